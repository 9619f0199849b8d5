/* frames.c: puts frames together from datagrams. Every length is checked against its cap before memory is taken for it,
 * and memory grows with what has really arrived, not with what a header announces. */
#include "frames.h"

#include <string.h>

#define MAGIC 0x314e524bu /* "KRN1" */
#define VERSION 1

struct header {
	uint8_t type;
	bool no_ack;
	uint32_t call, id, total, offset;
};

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(uint8_t *p, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

/* Returns why the header is bad, or NULL. */
static const char *read_header(const uint8_t *p, size_t len, struct header *ret)
{
	if (len < KS_FRAME_HEADER)
		return "a datagram shorter than its header";
	if (len > KS_FRAME_DATAGRAM)
		return "a datagram that is too long";
	if (get32(p) != MAGIC || p[4] != VERSION)
		return "not a frame of version 1";
	if (p[5] == 0 || p[5] == KS_FRAME_ACK || p[5] == KS_FRAME_CELL)
		return "a type that the box may not send";
	if (get16(p + 6) & ~KS_FRAME_NO_ACK)
		return "unknown flags";
	*ret = (struct header){ p[5], get16(p + 6) & KS_FRAME_NO_ACK, get32(p + 8), get32(p + 12), get32(p + 16), get32(p + 20) };
	if (ret->total > KS_FRAME_BYTES)
		return "a frame that is too large";
	if (len == KS_FRAME_HEADER && ret->total != 0)
		return "an empty piece";
	return NULL;
}

/* A new frame may begin while another is unfinished: its sender was interrupted in the middle (KeyboardInterrupt). */
static const char *begin(struct ks_frames *frames, const struct header *h)
{
	if (h->id <= frames->last_id)
		return "a frame number that does not grow";
	frames->open = true;
	frames->last_id = frames->id = h->id;
	frames->type = h->type;
	frames->call = h->call;
	frames->total = h->total;
	frames->no_ack = h->no_ack;
	if (frames->count < UINT32_MAX)
		frames->count++;
	ks_buf_clear(&frames->payload);
	return NULL;
}

static const char *go_on(const struct ks_frames *frames, const struct header *h)
{
	if (!frames->open || h->id != frames->id)
		return "a piece of no frame";
	if (h->type != frames->type || h->call != frames->call || h->total != frames->total || h->no_ack != frames->no_ack)
		return "pieces that disagree about their frame";
	if (h->offset != frames->payload.len)
		return "a piece out of order";
	return NULL;
}

static bool key_valid(const char *key, size_t len)
{
	if (len < 2 || len > KS_FRAME_KEY + 1 || key[len - 1] != '\0')
		return false;
	for (size_t i = 0; i + 1 < len; i++)
		if (key[i] <= ' ' || key[i] > '~')
			return false;
	return true;
}

/* Payload: parts one after the other, each { u16 key length with its NUL, u32 data length, key, NUL, data }. */
static const char *read_parts(struct ks_frames *frames, size_t *ret_count)
{
	const char *at = frames->payload.data;
	size_t left = frames->payload.len, count = 0;

	while (left > 0) {
		if (left < 6)
			return "a part shorter than its header";
		const uint8_t *head = (const uint8_t *)at;
		size_t key_len = get16(head), data_len = get32(head + 2);
		at += 6;
		left -= 6;
		if (key_len > left || data_len > left - key_len)
			return "a part longer than its frame";
		if (!key_valid(at, key_len))
			return "a bad key";
		if (count == KS_FRAME_PARTS)
			return "too many parts";
		frames->parts[count++] = (struct kern_part){ at, at + key_len, data_len };
		at += key_len + data_len;
		left -= key_len + data_len;
	}
	*ret_count = count;
	return NULL;
}

static enum ks_frames_status corrupt(struct ks_frames *frames, const char *reason)
{
	frames->corrupt = true;
	frames->open = false;
	frames->reason = reason;
	ks_buf_free(&frames->payload);
	return KS_FRAMES_CORRUPT;
}

/* Over the limit a value and an error still pass, as they matter most (results.c keeps one of each), and what a kernel says of itself. */
static bool over_limit(const struct ks_frames *frames)
{
	return frames->count > KS_FRAMES_PER_CALL && frames->type != KERN_FRAME_VALUE &&
	       frames->type != KERN_FRAME_ERROR && frames->type != KERN_FRAME_STATE;
}

enum ks_frames_status ks_frames_feed(struct ks_frames *frames, const void *datagram, size_t len, struct kern_frame *ret)
{
	struct header h;
	const char *bad;
	size_t part_count = 0;

	if (frames->corrupt)
		return KS_FRAMES_CORRUPT;
	bad = read_header(datagram, len, &h);
	if (!bad)
		bad = h.offset == 0 ? begin(frames, &h) : go_on(frames, &h);
	if (!bad && len - KS_FRAME_HEADER > h.total - h.offset)
		bad = "a piece longer than its frame";
	if (bad)
		return corrupt(frames, bad);
	ks_buf_add(&frames->payload, (const uint8_t *)datagram + KS_FRAME_HEADER, len - KS_FRAME_HEADER);
	if (frames->payload.failed)
		return corrupt(frames, "no memory for the frame");
	if (frames->payload.len < h.total)
		return KS_FRAMES_MORE;

	frames->open = false;
	bad = read_parts(frames, &part_count);
	if (bad)
		return corrupt(frames, bad);
	*ret = (struct kern_frame){ sizeof(*ret), h.type, h.call, h.id, frames->parts, part_count };
	if (!over_limit(frames))
		return KS_FRAMES_COMPLETE;
	frames->limit = true;
	ret->parts = NULL;
	ret->part_count = 0;
	return KS_FRAMES_DROPPED;
}

void ks_frames_next_call(struct ks_frames *frames)
{
	frames->count = 0;
	frames->limit = false;
}

void ks_frames_free(struct ks_frames *frames)
{
	ks_buf_free(&frames->payload);
	*frames = (struct ks_frames){ 0 };
}

const struct kern_part *ks_frame_part(const struct kern_frame *frame, const char *key)
{
	for (size_t i = 0; i < frame->part_count; i++)
		if (strcmp(frame->parts[i].key, key) == 0)
			return &frame->parts[i];
	return NULL;
}

int ks_frame_status(const struct kern_part *part)
{
	int code = 0;

	for (size_t i = 0; i < part->len && i < 3; i++)
		if (((const char *)part->data)[i] >= '0' && ((const char *)part->data)[i] <= '9')
			code = code * 10 + ((const char *)part->data)[i] - '0';
	return code & 0xff;
}

static void write_header(uint32_t type, uint32_t call, uint32_t id, uint32_t total, uint8_t ret[static KS_FRAME_HEADER])
{
	memset(ret, 0, KS_FRAME_HEADER);
	put32(ret, MAGIC);
	ret[4] = VERSION;
	ret[5] = (uint8_t)type;
	put32(ret + 8, call);
	put32(ret + 12, id);
	put32(ret + 16, total);
}

void ks_frames_write(uint32_t type, uint32_t call, const struct kern_part *parts, size_t count, struct ks_buf *datagram)
{
	uint8_t header[KS_FRAME_HEADER], head[6];

	ks_buf_clear(datagram);
	if (ks_buf_reserve(datagram, KS_FRAME_HEADER))
		datagram->len = KS_FRAME_HEADER;
	for (size_t i = 0; i < count; i++) {
		size_t key_len = strlen(parts[i].key) + 1;
		head[0] = (uint8_t)key_len;
		head[1] = 0;
		put32(head + 2, (uint32_t)parts[i].len);
		ks_buf_add(datagram, head, sizeof(head));
		ks_buf_add(datagram, parts[i].key, key_len);
		ks_buf_add(datagram, parts[i].data, parts[i].len);
	}
	if (datagram->failed)
		return;
	write_header(type, call, 0, (uint32_t)(datagram->len - KS_FRAME_HEADER), header);
	memcpy(datagram->data, header, sizeof(header));
}

void ks_frames_ack(uint32_t call, uint32_t id, uint8_t ret[static KS_FRAME_HEADER])
{
	write_header(KS_FRAME_ACK, call, id, 0, ret);
}
