/* Needs a function that nobody has. */
extern int kern_no_such_function(void);
int kern_calls_it(void);

int kern_calls_it(void)
{
	return kern_no_such_function();
}
#include "good.h"
