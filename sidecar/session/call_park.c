/* call_park.c: interpreters that are booted before their call comes. Each sits in a box of its own, under all of its confinement, with
 * the runner of its language waiting at the result channel for the words that it would have been started with. It serves one call.
 *
 * Before that nothing of the caller's may run in it. So there is none where the caller's files could have a say in how an interpreter
 * boots: one that the request named, packages that the code may write, variables that are read at the start. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "session/call_parts.h"

#define WORDS_MAX ((size_t)60000) /* a message of the channel holds 64 KiB; longer code boots its own */

struct ks_parking {
	void (*done)(void *arg, enum ks_park_word word, const char *why);
	void *arg;
	bool forks;
	int join_fd;
};

static const struct ks_run_params no_params = KS_RUN_PARAMS_ABSENT;

/* ---- may it? ---- */

/* Does the interpreter read it at its start? An entry that ends in "*" stands for all that begin so. */
static bool is_read_at_boot(const struct ks_language *language, const char *name)
{
	const char *const *known = language->api.boot_env;

	for (; known && *known; known++) {
		size_t len = strlen(*known);
		if ((*known)[len - 1] == '*' ? strncmp(name, *known, len - 1) == 0 : strcmp(name, *known) == 0)
			return true;
	}
	return !language->api.boot_env;
}

static bool env_is_late(const struct ks_language *language, const struct ks_pairs *env)
{
	for (size_t i = 0; i < env->count; i++)
		if (is_read_at_boot(language, env->names[i]))
			return false;
	return true;
}

/* Modules that are loaded ahead may read any variable when they are. */
static bool preloads(const struct ks_call *call)
{
	return call->session->preload.count > 0 && strcmp(call->language->api.name, "python") == 0;
}

static bool session_can_park(struct ks_session *session, const struct ks_language *language)
{
	if (!(language->api.flags & KERN_CAN_ZYGOTE) || !(language->api.flags & KERN_CAN_RICH) ||
	    (session->deps.present && !session->deps.readonly) || !env_is_late(language, &session->env) ||
	    !ks_session_interpreter(session, language))
		return false;
	for (struct ks_list *n = session->interpreters.next; n != &session->interpreters; n = n->next) {
		const struct ks_interpreter *i = KS_ENTRY(n, struct ks_interpreter, node);
		if (strcmp(i->language, language->api.name) == 0)
			return !i->given;
	}
	return false;
}

static bool is_default_cwd(const struct ks_call *call)
{
	struct ks_error err;
	KS_AUTOFREE char *wanted = ks_session_resolve_cwd(call->session, call->params->cwd, &err);
	KS_AUTOFREE char *usual = ks_session_resolve_cwd(call->session, NULL, &err);

	return wanted && usual && strcmp(wanted, usual) == 0;
}

bool ks_call_can_park(const struct ks_call *call)
{
	const struct ks_run_params *params = call->params;
	const struct ks_box_limits usual = ks_call_session_limits(call->session);

	/* What a process has from its start: its descriptors, its directory, its limits. */
	return call->language && !params->stdin_text.present && !params->interactive && !params->merge &&
	       call->limits.memory_bytes == usual.memory_bytes && call->limits.pids == usual.pids &&
	       call->limits.cpus_milli == usual.cpus_milli && call->code_len < WORDS_MAX && is_default_cwd(call) &&
	       (preloads(call) ? params->env.count == 0 : env_is_late(call->language, &params->env)) &&
	       session_can_park(call->session, call->language);
}

/* ---- one that waits ---- */

struct ks_call *ks_call_new_parked(struct ks_session *session, const struct ks_language *language, bool forks,
				   void (*done)(void *arg, enum ks_park_word word, const char *why), void *arg)
{
	struct ks_call *parked = session_can_park(session, language) ? calloc(1, sizeof(*parked)) : NULL;
	struct ks_parking *parking = parked ? calloc(1, sizeof(*parking)) : NULL;

	if (!parking) {
		free(parked);
		return NULL;
	}
	*parking = (struct ks_parking){ done, arg, forks, -1 };
	*parked = (struct ks_call){ .core = session->core, .session = session, .language = language, .params = &no_params, .code = "",
				    .state = KS_CALL_DONE, .parking = parking, .in.fd = -1, .channel.fd = -1 };
	ks_list_init(&parked->node);
	ks_list_init(&parked->session_node);
	ks_results_init(&parked->results);
	return parked;
}

uint32_t ks_call_park_flags(const struct ks_call *parked)
{
	return KERN_RUN_PARK | (parked->parking->forks ? KERN_RUN_ZYGOTE : 0);
}

int ks_call_join_fd(const struct ks_call *call)
{
	return call->parking ? call->parking->join_fd : -1;
}

static bool has_key(const uint8_t *word, size_t len, const char *key)
{
	const size_t at = KS_FRAME_HEADER + 6, size = strlen(key) + 1;

	return len >= at + size && memcmp(word + at, key, size) == 0;
}

/* A frame of one part: "ready", or "failed" or "unable" with a reason, which code of a module may have written. */
static enum ks_park_word read_word(const uint8_t *word, ssize_t len, char ret_text[KS_PARK_REASON])
{
	const size_t at = KS_FRAME_HEADER + 6 + sizeof("failed");

	(void)snprintf(ret_text, KS_PARK_REASON, "its interpreter does not wait for code");
	if (len < KS_FRAME_HEADER || memcmp(word, "KRN1", 4) != 0 || word[5] != KERN_FRAME_STATE)
		return KS_PARK_SILENT;
	const bool failed = has_key(word, (size_t)len, "failed");
	if (!failed && !has_key(word, (size_t)len, "unable"))
		return KS_PARK_READY;
	size_t n = 0;
	for (; at + n < (size_t)len && n + 1 < KS_PARK_REASON; n++)
		ret_text[n] = word[at + n] >= ' ' && word[at + n] <= '~' ? (char)word[at + n] : '?';
	ret_text[n] = '\0';
	return failed ? KS_PARK_FAILED : KS_PARK_UNABLE;
}

static void on_word(uv_poll_t *poll, int status, int events)
{
	const struct ks_call *parked = poll->data;
	const struct ks_parking *parking = parked->parking;
	uint8_t word[KS_FRAME_HEADER + 512];
	char text[KS_PARK_REASON];

	(void)status;
	(void)events;
	ssize_t n = recv(parked->channel.fd, word, sizeof(word), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	(void)uv_poll_stop(poll);
	const enum ks_park_word said = read_word(word, n, text);
	parking->done(parking->arg, said, text);
}

enum ks_park_word ks_call_park_last_word(const struct ks_call *parked, char ret_why[KS_PARK_REASON])
{
	uint8_t word[KS_FRAME_HEADER + 512];
	const ssize_t n = parked && parked->channel.fd >= 0 ? recv(parked->channel.fd, word, sizeof(word), MSG_DONTWAIT) : -1;
	const enum ks_park_word said = read_word(word, n, ret_why);

	if (said == KS_PARK_FAILED || said == KS_PARK_UNABLE)
		return said;
	(void)snprintf(ret_why, KS_PARK_REASON, "its processes ended");
	return KS_PARK_SILENT;
}

int ks_call_park(struct ks_call *parked, struct ks_box *box, int join_fd, struct ks_error *err)
{
	parked->box = box;
	parked->parking->join_fd = join_fd;
	int rc = ks_call_claim(parked, err);
	parked->parking->join_fd = -1;
	parked->box = NULL;
	if (rc < 0)
		return -1;
	if (uv_poll_init(parked->core->loop, &parked->channel.poll, parked->channel.fd) < 0)
		return ks_fail(err, KS_E_OVERLOADED, "cannot watch a parked interpreter");
	parked->channel.poll.data = parked;
	parked->channel.watched = true;
	parked->handles++;
	(void)uv_poll_start(&parked->channel.poll, UV_READABLE | UV_DISCONNECT, on_word);
	return 0;
}

void ks_call_unpark_done(struct ks_call *parked)
{
	free(KS_TAKE_PTR(parked->parking));
	ks_call_disconnect(parked);
	ks_call_let_go(parked);
}

/* ---- its call ---- */

int ks_call_adopt(struct ks_call *call, struct ks_box *box, struct ks_call *parked, struct ks_error *err)
{
	if (ks_box_adopt(box, &call->limits, &ks_call_box_ops, call, err) < 0)
		return -1;
	call->box = box;
	if (!parked)
		return 0;
	call->parked = true;
	for (int i = 0; i < 2; i++)
		if (parked->out[i])
			ks_call_own_output(call, i, KS_TAKE_PTR(parked->out[i]));
	if (parked->channel.watched)
		uv_close((uv_handle_t *)&parked->channel.poll, ks_call_handle_closed);
	parked->channel.watched = false;
	call->channel.fd = KS_TAKE_FD(parked->channel.fd);
	return 0;
}

static void add_part(struct ks_buf *message, const char *key, const void *data, size_t len, const void *more, size_t more_len)
{
	const size_t key_len = strlen(key) + 1, all = len + more_len;
	const uint8_t head[6] = { (uint8_t)key_len, 0, (uint8_t)all, (uint8_t)(all >> 8), (uint8_t)(all >> 16), (uint8_t)(all >> 24) };

	ks_buf_add(message, head, sizeof(head));
	ks_buf_add(message, key, key_len);
	ks_buf_add(message, data, len);
	ks_buf_add(message, more, more_len);
}

/* The variables of the request itself: all others are what it has been booted with. */
static int pack_words(struct ks_call *call, const struct ks_prepared *prepared, struct ks_buf *message, struct ks_error *err)
{
	const struct ks_pairs *env = &call->params->env;

	for (size_t i = 0; i < prepared->argc; i++)
		add_part(message, "word", prepared->argv[i], strlen(prepared->argv[i]), "", 0);
	for (size_t i = 0; i < env->count; i++) {
		KS_AUTOBUF struct ks_buf name = { 0 };
		ks_buf_printf(&name, "%s=", env->names[i]);
		add_part(message, "env", name.data, name.len, env->values[i], strlen(env->values[i]));
	}
	for (size_t i = 0; i < prepared->file_count; i++) {
		const struct ks_prepared_file *file = &prepared->files[i];
		if (file->mode != 0644)
			return ks_fail(err, KS_E_PLUGIN_ERROR, "a parked interpreter writes its file with mode 0644");
		KS_AUTOBUF struct ks_buf path = { 0 };
		ks_buf_printf(&path, KS_CODE_DIR "/%s", file->name);
		ks_buf_char(&path, '\0');
		add_part(message, "file", path.data, path.len, file->data, file->len);
	}
	if (message->failed || message->len > KS_FRAME_PIECE)
		return ks_fail(err, KS_E_OVERLOADED, "the words do not fit one message");
	return 0;
}

int ks_call_unpark(struct ks_call *call, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf words = { 0 }, message = { 0 };
	struct ks_prepared prepared = { 0 };

	int rc = ks_call_prepare(call, &prepared, err);
	if (rc == 0)
		rc = pack_words(call, &prepared, &words, err);
	ks_prepared_free(&prepared);
	if (rc < 0)
		return -1;
	ks_frames_write(KS_FRAME_RUN, 0, NULL, 0, &message);
	ks_buf_add(&message, words.data, words.len);
	ks_box_escape_begin(call->box);
	ssize_t n = message.failed ? -1 : send(call->channel.fd, message.data, message.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n != (ssize_t)message.len)
		return ks_fail_errno(err, KS_E_OVERLOADED, errno, "the interpreter does not listen any more");
	ks_call_watch_channel(call);
	return 0;
}
