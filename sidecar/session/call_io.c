/* call_io.c: the pipes of a call and its result channel, on the sidecar's side. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "box/msg.h"
#include "session/call_parts.h"
#include "session/json_check.h"
#include "session/kernel.h"

#define DRAIN_FIRST 65536 /* what an ordinary pipe holds (pipe(7)) */
#define DIGEST_STEP ((size_t)1 << 20) /* less is hashed only when it becomes a blob */
#define READ_SLICE ((size_t)256 << 10) /* of one stream in one turn of the loop */

/* ---- connecting ---- */

static int open_null(int *ret_fd, struct ks_error *err)
{
	*ret_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot open /dev/null") : 0;
}

static int make_input(struct ks_call *call, int *ret_theirs, struct ks_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot make a pipe");
	call->in.fd = ends[1];
	*ret_theirs = ends[0];
	(void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
	(void)fchmod(ends[0], 0666); /* as pipe.c does */
	return 0;
}

static void on_output(struct ks_pipe *pipe);

static int make_output(struct ks_call *call, int which, int *ret_theirs, struct ks_error *err)
{
	if (ks_pipe_open(call->core->loop, &call->out[which], ret_theirs, err) < 0)
		return -1;
	ks_call_own_output(call, which, call->out[which]);
	return 0;
}

static int connect_channel(struct ks_call *call, int *ret_theirs, struct ks_error *err)
{
	int pair[2];

	if (!(call->kernel && call->kernel->pty) && (!call->language || !(call->language->api.flags & KERN_CAN_RICH)))
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ks_fail_errno(err, KS_E_OVERLOADED, errno, "cannot make a result channel");
	if (setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0) { /* who says a word has to be attested */
		const int rc = ks_fail_errno(err, KS_E_INTERNAL, errno, "cannot make a result channel");
		ks_close_all(pair, 2);
		return rc;
	}
	(void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
	call->channel.fd = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

void ks_call_own_output(struct ks_call *call, int which, struct ks_pipe *pipe)
{
	call->out[which] = pipe;
	pipe->owner = call;
	pipe->readable = on_output;
}

int ks_call_connect_input(struct ks_call *call, int *ret_theirs, struct ks_error *err)
{
	if (!call->params->stdin_text.present && !call->params->interactive)
		return 0;
	if (make_input(call, ret_theirs, err) < 0)
		return -1;
	call->in_eof |= !call->params->interactive;
	ks_buf_add(&call->in_queue, call->stdin_data, call->stdin_len);
	return 0;
}

int ks_call_connect(struct ks_call *call, int ret_stdio[3], int *ret_result, struct ks_error *err)
{
	ret_stdio[0] = -1;
	if (ks_call_connect_input(call, &ret_stdio[0], err) < 0 || (ret_stdio[0] < 0 && open_null(&ret_stdio[0], err) < 0))
		return -1;
	if (make_output(call, 0, &ret_stdio[1], err) < 0)
		return -1;
	if (call->params->merge)
		ret_stdio[2] = ret_stdio[1];
	else if (make_output(call, 1, &ret_stdio[2], err) < 0)
		return -1;
	return connect_channel(call, ret_result, err);
}

static void unwatch(struct ks_call_pipe *pipe)
{
	if (pipe->watched)
		uv_close((uv_handle_t *)&pipe->poll, ks_call_handle_closed);
	pipe->watched = false;
	ks_close(&pipe->fd);
}

static bool watch(struct ks_call *call, struct ks_call_pipe *pipe, int events, uv_poll_cb cb)
{
	if (pipe->fd < 0)
		return false;
	if (!pipe->watched) {
		if (uv_poll_init(call->core->loop, &pipe->poll, pipe->fd) < 0)
			return false;
		pipe->poll.data = call;
		pipe->watched = true;
		call->handles++;
	}
	return uv_poll_start(&pipe->poll, events, cb) == 0;
}

/* ---- output ---- */

static void keep(struct ks_call *call, int which, const char *data, size_t len)
{
	struct ks_output_log *log = &call->log[which];
	size_t max = (size_t)call->max_output_bytes, room = log->kept.len < max ? max - log->kept.len : 0;

	log->total += len;
	ks_buf_add(&log->kept, data, len < room ? len : room);
	if (log->kept.len - log->digest.bytes >= DIGEST_STEP)
		ks_digest_update(&log->digest, log->kept.data, log->kept.len);
	call->outcome.truncated |= len > room;
	call->ops->output(call->arg, which ? KS_STDERR : KS_STDOUT, data, len);
}

/* At most `max` bytes of one stream. False when there is nothing more now. */
static bool read_some(struct ks_call *call, int which, size_t max)
{
	static char buffer[65536]; /* one thread, and nothing below reads */
	struct ks_pipe *pipe = call->out[which];

	while (max > 0 && pipe) {
		ssize_t n = read(pipe->fd, buffer, max < sizeof(buffer) ? max : sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			ks_pipe_close(KS_TAKE_PTR(call->out[which]));
			return false;
		}
		keep(call, which, buffer, (size_t)n);
		max -= (size_t)n;
	}
	return pipe != NULL;
}

static void on_output(struct ks_pipe *pipe)
{
	struct ks_call *call = pipe->owner;
	int which = pipe == call->out[1];

	size_t room = call->ops->room(call->arg);
	if (room == 0) { /* the box waits until ks_call_resume() */
		ks_pipe_flow(pipe, false);
		return;
	}
	(void)read_some(call, which, room < READ_SLICE ? room : READ_SLICE);
}

void ks_call_resume(struct ks_call *call)
{
	if (call->state != KS_CALL_RUNNING)
		return;
	for (int i = 0; i < 2; i++)
		if (call->out[i])
			ks_pipe_flow(call->out[i], true);
}

/* What a stream holds now, and no more than fits a pipe: a process that goes on writing cannot hold us here. */
static void drain_stream(struct ks_call *call, int which)
{
	if (!read_some(call, which, DRAIN_FIRST))
		return;
	int capacity = fcntl(call->out[which]->fd, F_GETPIPE_SZ);
	if (capacity > DRAIN_FIRST)
		(void)read_some(call, which, (size_t)capacity - DRAIN_FIRST);
}

/* ---- the result channel ---- */

static void close_channel(struct ks_call *call)
{
	unwatch(&call->channel);
}

static void lose_channel(struct ks_call *call, const char *why)
{
	ks_log(KS_LOG_INFO, "channel_corrupt", "run %s: %s", call->id, why);
	call->frames.corrupt = true;
	close_channel(call);
	if (call->kernel)
		ks_kernel_channel_lost(call->kernel);
}

/* Whose frame it is: the call's own, or that of the cell which its process works on. One of a former cell is nobody's. */
static struct ks_call *receiver(struct ks_call *call, const struct kern_frame *frame)
{
	struct ks_call *cell = call->kernel ? call->kernel->cell : NULL;

	if (!call->kernel)
		return call;
	return cell && cell->state == KS_CALL_RUNNING && frame->call == cell->number ? cell : NULL;
}

/* A state. Whoever has the channel can write to it; what the main process is up to is only for that process to say. Where its number
 * is not known, a cell is believed to be done by what has its channel, as everything else there is, but no box is ended. */
static void take_word(struct ks_call *call, const struct kern_frame *frame)
{
	const bool boots = call->kernel ? call->kernel->state == KS_KERNEL_STARTING : call->parked && !call->begun;
	const int main = call->box ? ks_box_main_pid(call->box) : -1;

	if (!boots && call->sender != main && (main > 0 || !call->kernel))
		return;
	if (call->kernel) {
		if (ks_kernel_frame(call->kernel, frame) < 0)
			lose_channel(call, "a word about a cell that makes no sense");
	} else if (boots) {
		ks_frames_next_call(&call->frames);
		ks_call_begun(call);
	} else if (ks_frame_part(frame, "exit")) {
		call->last_word = ks_frame_status(ks_frame_part(frame, "exit"));
	}
}

/* Recorded where it stands in the output, then acknowledged: prints before it have been read, prints after it come after the ack. */
static void record(struct ks_call *call, struct ks_call *to, const struct kern_frame *frame);

static void take_frame(struct ks_call *call, const struct kern_frame *frame, bool dropped)
{
	struct ks_call *to = receiver(call, frame);

	if (to && !(frame->type == KERN_FRAME_STATE && ks_frame_part(frame, "done"))) { /* the end of a cell reads the rest anyway */
		drain_stream(to, 0);
		drain_stream(to, 1);
	}
	if (frame->type == KERN_FRAME_STATE) {
		take_word(call, frame);
		return;
	}
	if (to && !dropped) {
		to->results.at_stdout = to->log[0].total;
		to->results.at_stderr = to->log[1].total;
		if (ks_call_check_images(call, frame))
			return;
	}
	record(call, dropped ? NULL : to, frame);
}

void ks_call_frame_checked(struct ks_call *call, const struct kern_frame *frame)
{
	record(call, receiver(call, frame), frame);
}

static void record(struct ks_call *call, struct ks_call *to, const struct kern_frame *frame)
{
	uint8_t ack[KS_FRAME_HEADER];
	struct ks_error err;

	if (to) {
		to->results.check = ks_call_image_verdict;
		to->results.check_arg = call;
		if (ks_plugin_result(call->language, frame, &to->results, &err) < 0) {
			lose_channel(call, err.text);
			return;
		}
	}
	ks_frames_ack(frame->call, frame->id, ack);
	if (call->channel.fd >= 0 && !call->frames.no_ack)
		(void)send(call->channel.fd, ack, sizeof(ack), MSG_DONTWAIT | MSG_NOSIGNAL);
	if (call->kernel && frame->type == KERN_FRAME_VALUE && ks_frame_part(frame, "done"))
		take_word(call, frame); /* nothing came between the value of the cell and its end */
}

/* No room for more than the credentials: descriptors that the box sends are dropped (unix(7)). */
static ssize_t receive(int fd, void *datagram, size_t size, int *ret_sender)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = { datagram, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	struct ucred who = { .pid = -1 };

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS)
		memcpy(&who, CMSG_DATA(head), sizeof(who));
	*ret_sender = who.pid;
	return n;
}

static void read_channel(struct ks_call *call)
{
	static char datagram[KS_FRAME_DATAGRAM + 1];
	struct kern_frame frame;

	for (int i = 0; i < 64 && call->channel.fd >= 0 && !call->images.busy; i++) {
		ssize_t n = receive(call->channel.fd, datagram, sizeof(datagram), &call->sender);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
			return;
		if (n <= 0) {
			close_channel(call);
			if (call->kernel && call->state == KS_CALL_RUNNING)
				ks_kernel_channel_lost(call->kernel);
			else if (call->box && call->state == KS_CALL_RUNNING)
				call->channel_lost = ks_box_lives(call->box); /* else its end is on the way */
			return;
		}
		enum ks_frames_status got = ks_frames_feed(&call->frames, datagram, (size_t)n, &frame);
		if (got == KS_FRAMES_COMPLETE || got == KS_FRAMES_DROPPED) {
			take_frame(call, &frame, got == KS_FRAMES_DROPPED);
			if (call->kernel && call->kernel->state == KS_KERNEL_IDLE)
				return; /* its cell is over: it says nothing more, or what it says can wait for the next turn */
		} else if (got == KS_FRAMES_CORRUPT) {
			lose_channel(call, call->frames.reason);
		}
	}
}

static void on_channel(uv_poll_t *poll, int status, int events)
{
	struct ks_call *call = poll->data;

	(void)status;
	(void)events;
	read_channel(call);
	if (call->images.busy && call->channel.watched)
		(void)uv_poll_stop(&call->channel.poll);
	if (call->last_word >= 0 && call->state == KS_CALL_RUNNING && !call->box_ended)
		(void)ks_box_conclude(call->box, KS_TAKE(call->last_word, -1));
}

void ks_call_channel_free(struct ks_call *call)
{
	if (call->images.ended) {
		call->images.ended = false;
		ks_call_end(call);
	} else if (call->channel.watched) {
		(void)uv_poll_start(&call->channel.poll, UV_READABLE | UV_DISCONNECT, on_channel);
	}
}

/* ---- input ---- */

static void on_input(uv_poll_t *poll, int status, int events);

static void write_input(struct ks_call *call)
{
	while (call->in.fd >= 0 && call->in_done < call->in_queue.len) {
		ssize_t n = write(call->in.fd, call->in_queue.data + call->in_done, call->in_queue.len - call->in_done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			(void)watch(call, &call->in, UV_WRITABLE | UV_DISCONNECT, on_input);
			return;
		}
		if (n < 0) { /* EPIPE: nobody reads it any more, which is no error of the call */
			call->in_done = call->in_queue.len;
			unwatch(&call->in);
			break;
		}
		call->in_done += (size_t)n;
	}
	ks_buf_free(&call->in_queue);
	call->in_done = 0;
	if (call->in.watched)
		(void)uv_poll_stop(&call->in.poll);
	if (call->in_eof)
		unwatch(&call->in);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
	struct ks_call *call = poll->data;

	(void)status;
	(void)events;
	write_input(call);
}

void ks_call_feed(struct ks_call *call)
{
	if (call->in.fd >= 0)
		write_input(call);
}

int ks_call_stdin(struct ks_call *call, const void *data, size_t len, bool eof, struct ks_error *err)
{
	if (!call->params->interactive)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/runId", "run %s was not started with %s:true", call->id,
				  call->cell ? "allowInput" : "interactive");
	if (call->in_eof)
		return ks_fail_at(err, KS_E_INVALID_REQUEST, "/runId", "the input of run %s has been ended", call->id);
	size_t waiting = call->in_queue.len - call->in_done;
	if (waiting + len > KS_STDIN_QUEUE) {
		(void)ks_fail(err, KS_E_OVERLOADED, "%zu bytes of input wait for the box to read them; at most %zu may", waiting,
			      KS_STDIN_QUEUE);
		return ks_error_hint(err, "send the same again later");
	}
	if ((call->claimed || call->state == KS_CALL_RUNNING) && call->in.fd < 0)
		len = 0; /* the code has closed its input */
	ks_buf_drop(&call->in_queue, KS_TAKE(call->in_done, 0));
	ks_buf_add(&call->in_queue, data, len);
	call->in_eof = eof;
	if (call->state == KS_CALL_RUNNING)
		write_input(call);
	return 0;
}

/* ---- all of it ---- */

void ks_call_watch_channel(struct ks_call *call)
{
	call->results.json_valid = ks_json_valid;
	(void)watch(call, &call->channel, UV_READABLE | UV_DISCONNECT, on_channel);
}

void ks_call_look_whether_begun(struct ks_call *call)
{
	if (!call->begun)
		read_channel(call);
}

void ks_call_watch(struct ks_call *call)
{
	ks_call_resume(call);
	ks_call_watch_channel(call);
	write_input(call);
}

void ks_call_drain(struct ks_call *call)
{
	read_channel(call); /* each frame reads what was printed before it */
	drain_stream(call, 0);
	drain_stream(call, 1);
}

void ks_call_disconnect(struct ks_call *call)
{
	for (int i = 0; i < 2; i++)
		ks_pipe_close(KS_TAKE_PTR(call->out[i]));
	unwatch(&call->in);
	unwatch(&call->channel);
	ks_buf_free(&call->in_queue);
}

void ks_call_io_free(struct ks_call *call)
{
	ks_buf_free(&call->log[0].kept);
	ks_buf_free(&call->log[1].kept);
	ks_buf_free(&call->in_queue);
	ks_frames_free(&call->frames);
	ks_results_free(&call->results);
	ks_call_images_free(call);
}
