/* main.c: kern-worker, the program that touches files for the sidecar and reads what others wrote: archives, patterns, trees. Started
 * by the sidecar only, with one end of a socket as descriptor 3. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "serve.h"
#include "workspace/beneath.h"

int main(void)
{
	struct stat st;

	if (fstat(KS_WORKER_SOCKET, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		(void)fputs("kern-worker is started by kern-sidecar, not by hand\n", stderr);
		return 2;
	}
	if (KS_TEST_HOOKS && getenv("KERN_TEST_NO_OPENAT2"))
		ks_beneath_without_openat2(true);
	ks_serve(KS_WORKER_SOCKET);
}
