#include "session/gate.h"

#include "session/call.h"
#include "session/files.h"
#include "session/spares.h"

void ks_gate_init(struct ks_gate *gate)
{
	ks_list_init(&gate->asked);
}

static struct ks_exclusive *first(const struct ks_gate *gate)
{
	return ks_list_empty(&gate->asked) ? NULL : KS_ENTRY(gate->asked.next, struct ks_exclusive, node);
}

uint64_t ks_gate_ticket(const struct ks_gate *gate)
{
	return gate->last;
}

bool ks_gate_passed(const struct ks_gate *gate, uint64_t ticket)
{
	return !first(gate) || ticket < first(gate)->number;
}

void ks_gate_turn(struct ks_session *session)
{
	struct ks_exclusive *next = first(&session->gate);

	if (!next || next->granted || session->state != KS_SESSION_OPEN || ks_calls_before(session, next->number) ||
	    ks_files_before(session, next->number))
		return;
	ks_spares_drop(session); /* made of what may be about to change */
	next->granted = true;
	next->grant(next);
}

void ks_gate_ask(struct ks_session *session, struct ks_exclusive *exclusive)
{
	exclusive->session = session;
	exclusive->number = ++session->gate.last;
	exclusive->granted = exclusive->told = false;
	ks_list_append(&session->gate.asked, &exclusive->node);
	ks_gate_turn(session);
}

void ks_gate_leave(struct ks_exclusive *exclusive)
{
	struct ks_session *session = exclusive->session;

	ks_list_remove(&exclusive->node);
	ks_files_turn(session);
	ks_calls_start_queued(session->core);
	ks_gate_turn(session);
	ks_session_turn(session); /* last: it may be what a close waited for */
}

void ks_gate_close(struct ks_session *session)
{
	for (struct ks_list *n = session->gate.asked.next, *next; n != &session->gate.asked; n = next) {
		struct ks_exclusive *exclusive = KS_ENTRY(n, struct ks_exclusive, node);
		next = n->next;
		if (exclusive->told)
			continue;
		exclusive->told = true;
		exclusive->closing(exclusive);
	}
}
