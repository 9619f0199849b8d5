/* poll_memory.h: what the processes of this pid namespace hold, for hosts without a memory cgroup. Read by a box's init, from the
 * box's own /proc. Not seen: page tables, socket and pipe buffers, memfds that nobody maps (refused there, see filter.h). */
#pragma once

#include <stdint.h>

/* Bytes of anonymous and shared memory, shared pages counted once over all processes, plus what lies in the box's tmpfs mounts.
 * An upper bound does (pages shared by processes counted for each) while it is not above `enough`: that one costs a twentieth. */
uint64_t ks_box_memory(uint64_t enough);
/* Milliseconds until the next look, 10 to 100: what is left below the cap, taken by `cpus` at 4 MiB a millisecond each, lasts longer. */
unsigned ks_box_memory_pause_ms(uint64_t bytes, uint64_t max, unsigned cpus);
