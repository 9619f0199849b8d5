/* Feeds a series of datagrams, each behind its length in two bytes, to the assembler, and its frames to the results.
 * What must hold whatever comes: memory stays within the caps, and a corrupt channel stays corrupt. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/frames.h"
#include "plugins/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool any_text(const char *text, size_t len, bool object)
{
	return len > 0 && (!object || text[0] == '{');
}

static void must(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ks_frames frames = { 0 };
	struct ks_results results;
	const size_t all = size;
	bool corrupt = false;

	ks_results_init(&results);
	results.json_valid = any_text;
	while (size >= 2) {
		size_t len = (size_t)data[0] | (size_t)data[1] << 8;
		struct kern_frame frame;
		data += 2;
		size -= 2;
		if (len > size)
			len = size;
		/* A copy of its own, so that a read behind the datagram is seen. */
		uint8_t *datagram = malloc(len ? len : 1);
		must(datagram != NULL);
		memcpy(datagram, data, len);
		enum ks_frames_status status = ks_frames_feed(&frames, datagram, len, &frame);
		free(datagram);
		must(!corrupt || status == KS_FRAMES_CORRUPT);
		corrupt = status == KS_FRAMES_CORRUPT;
		must(frames.payload.len <= all);
		if (status == KS_FRAMES_COMPLETE && ks_results_frame(&results, &frame) < 0)
			break;
		must(results.count <= KS_RESULTS_MAX + 1 && results.bytes <= KS_RESULTS_BYTES);
		data += len;
		size -= len;
	}
	ks_results_free(&results);
	must(results.bytes == 0 && results.count == 0);
	ks_frames_free(&frames);
	return 0;
}
