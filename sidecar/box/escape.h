/* escape.h: answers the notifications of a box's second filter. Facts only: the fault is what the kernel reported. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ks_escape {
	unsigned long count; /* calls refused so */
	int nr;		     /* of the first: number, name, and who made it */
	char call[32];
	char process[20];
	int doomed; /* pidfd of who got SIGSYS last and may have begun to ignore it meanwhile, or -1 */
	int64_t doomed_until_us;
};

/* Reads one notification from `listener`, refuses the call, ends the process. The first fills *escape.
 * false: the listener is broken, and the caller must kill the box. */
bool ks_escape_answer(int listener, struct ks_escape *escape, int64_t now_us);
/* Kills the doomed one when its time is over (or when `now_us` is INT64_MAX). */
void ks_escape_insist(struct ks_escape *escape, int64_t now_us);
