/* gate.h: what needs a session for itself (setup, restore). It waits for the runs and file operations that came before it; those that
 * come later wait for it. Order is kept by numbers: whoever asks for the gate gets the next one, whoever wants through takes a ticket
 * with the number of those that asked before. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct ks_session;

struct ks_exclusive {
	struct ks_list node;
	struct ks_session *session;
	uint64_t number;
	bool granted, told;
	void (*grant)(struct ks_exclusive *exclusive);
	/* The session closes: end soon, by ks_gate_leave(). At most once. */
	void (*closing)(struct ks_exclusive *exclusive);
};

struct ks_gate {
	struct ks_list asked; /* struct ks_exclusive, by number */
	uint64_t last;
};

void ks_gate_init(struct ks_gate *gate);
/* `grant` follows, perhaps at once. */
void ks_gate_ask(struct ks_session *session, struct ks_exclusive *exclusive);
/* Before or after the grant. */
void ks_gate_leave(struct ks_exclusive *exclusive);
uint64_t ks_gate_ticket(const struct ks_gate *gate);
bool ks_gate_passed(const struct ks_gate *gate, uint64_t ticket);
/* Something of the session ended: the first in the line may have its turn. */
void ks_gate_turn(struct ks_session *session);
void ks_gate_close(struct ks_session *session);
