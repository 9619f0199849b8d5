/* image.c: is this what its mime type says, and small enough to be looked at? A PNG is decoded row by row and encoded again from
 * nothing but its pixels, so that nothing else can travel in it. What only has a header that we read (JPEG, GIF, WebP) is passed as it is.
 *
 * Request: mime, bytes. Result: why not ("" : it is fine), width, height, the bytes to show instead (empty: the same).
 *
 * libpng (png.h) jumps out of its functions on an error: everything that must be freed lives in struct job. */
#include "jobs.h"

#include <png.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#define SIDE_MAX 16384u		      /* pixels: width, height */
#define PIXELS_MAX (40u << 20)	      /* of the whole: 160 MiB as RGBA */
#define WHOLE_MAX ((size_t)64 << 20)  /* bytes of pixels that are held at once, for an interlaced one */
#define CHUNKS_MAX 4096u
#define LEVEL 3			      /* zlib: as quick as it gets without growing */

struct source {
	const unsigned char *at;
	size_t left;
};

struct job {
	struct source source;
	struct ks_buf *out;
	png_structp reader, writer;
	png_infop reader_info, writer_info;
	unsigned char *pixels;
	png_bytep *rows;
	png_uint_32 width, height;
	int depth, color, interlace;
	const char *why;
	jmp_buf escape;
};

static uint32_t big32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* ---- PNG ---- */

/* Before libpng sees it: chunks that fill the file to its last byte, IHDR first, IEND last. */
static const char *walk(const unsigned char *data, size_t len)
{
	static const unsigned char signature[8] = { 137, 'P', 'N', 'G', 13, 10, 26, 10 };
	size_t at = sizeof(signature);

	if (len < 8 + 25 || memcmp(data, signature, sizeof(signature)) != 0 || memcmp(data + 12, "IHDR", 4) != 0 || big32(data + 8) != 13)
		return "no PNG";
	for (unsigned count = 0; at < len; count++) {
		if (len - at < 12 || big32(data + at) > len - at - 12 || count == CHUNKS_MAX)
			return "a damaged PNG";
		const bool last = memcmp(data + at + 4, "IEND", 4) == 0;
		at += 12 + big32(data + at);
		if (last)
			return at == len ? NULL : "a PNG with something behind its end";
	}
	return "a PNG without an end";
}

static void on_error(png_structp png, png_const_charp text)
{
	struct job *job = png_get_error_ptr(png);

	(void)text;
	if (!job->why)
		job->why = "a damaged PNG";
	longjmp(job->escape, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void read_bytes(png_structp png, png_bytep to, size_t len)
{
	struct source *source = png_get_io_ptr(png);

	if (len > source->left)
		png_error(png, "short");
	memcpy(to, source->at, len);
	source->at += len;
	source->left -= len;
}

static void write_bytes(png_structp png, png_bytep from, size_t len)
{
	ks_buf_add(png_get_io_ptr(png), from, len);
}

static void flush_bytes(png_structp png)
{
	(void)png;
}

static const char *open_reader(struct job *job)
{
	job->reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, job, on_error, on_warning);
	job->reader_info = job->reader ? png_create_info_struct(job->reader) : NULL;
	if (!job->reader_info)
		return "out of memory";
	png_set_user_limits(job->reader, SIDE_MAX, SIDE_MAX);
	png_set_chunk_malloc_max(job->reader, 1 << 20);
	png_set_chunk_cache_max(job->reader, 16);
	png_set_keep_unknown_chunks(job->reader, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
	png_set_crc_action(job->reader, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
	png_set_read_fn(job->reader, &job->source, read_bytes);
	return NULL;
}

/* Palette and transparency are part of the pixels' meaning, the density of their size; all else stays behind. */
static void copy_head(struct job *job)
{
	png_colorp palette;
	png_bytep alpha;
	png_color_16p color;
	png_uint_32 x, y;
	int count, unit;

	png_set_IHDR(job->writer, job->writer_info, job->width, job->height, job->depth, job->color, PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	if (png_get_PLTE(job->reader, job->reader_info, &palette, &count))
		png_set_PLTE(job->writer, job->writer_info, palette, count);
	if (png_get_tRNS(job->reader, job->reader_info, &alpha, &count, &color))
		png_set_tRNS(job->writer, job->writer_info, alpha, count, color);
	if (png_get_pHYs(job->reader, job->reader_info, &x, &y, &unit))
		png_set_pHYs(job->writer, job->writer_info, x, y, unit);
	png_write_info(job->writer, job->writer_info);
}

static void copy_rows(struct job *job, size_t row_bytes)
{
	job->pixels = malloc(row_bytes);
	if (!job->pixels)
		png_error(job->reader, "memory");
	for (png_uint_32 y = 0; y < job->height; y++) {
		png_read_row(job->reader, job->pixels, NULL);
		png_write_row(job->writer, job->pixels);
	}
}

static void copy_whole(struct job *job, size_t row_bytes)
{
	if (row_bytes > WHOLE_MAX / job->height) {
		job->why = "an interlaced PNG of more than 64 MiB";
		png_error(job->reader, job->why);
	}
	job->pixels = malloc(row_bytes * job->height);
	job->rows = calloc(job->height, sizeof(*job->rows));
	if (!job->pixels || !job->rows)
		png_error(job->reader, "memory");
	for (png_uint_32 y = 0; y < job->height; y++)
		job->rows[y] = job->pixels + y * row_bytes;
	png_read_image(job->reader, job->rows);
	png_write_image(job->writer, job->rows);
}

static void encode_again(struct job *job)
{
	png_read_info(job->reader, job->reader_info);
	(void)png_get_IHDR(job->reader, job->reader_info, &job->width, &job->height, &job->depth, &job->color, &job->interlace, NULL, NULL);
	if ((uint64_t)job->width * job->height > PIXELS_MAX) {
		job->why = "a PNG of more than 40 million pixels";
		png_error(job->reader, job->why);
	}
	job->writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, job, on_error, on_warning);
	job->writer_info = job->writer ? png_create_info_struct(job->writer) : NULL;
	if (!job->writer_info)
		png_error(job->reader, "memory");
	png_set_write_fn(job->writer, job->out, write_bytes, flush_bytes);
	png_set_compression_level(job->writer, LEVEL);
	copy_head(job);
	(void)png_set_interlace_handling(job->reader);
	png_read_update_info(job->reader, job->reader_info);
	const size_t row_bytes = png_get_rowbytes(job->reader, job->reader_info);
	if (job->interlace == PNG_INTERLACE_NONE)
		copy_rows(job, row_bytes);
	else
		copy_whole(job, row_bytes);
	png_read_end(job->reader, NULL);
	png_write_end(job->writer, NULL);
}

static const char *check_png(const unsigned char *data, size_t len, struct ks_buf *out, png_uint_32 ret_size[2])
{
	static struct job job; /* not automatic: longjmp(3) would leave it undefined */

	job = (struct job){ .source = { data, len }, .out = out };
	job.why = walk(data, len);
	if (!job.why)
		job.why = open_reader(&job);
	if (!job.why && setjmp(job.escape) == 0)
		encode_again(&job);
	if (!job.why && out->failed)
		job.why = "out of memory";
	png_destroy_read_struct(&job.reader, &job.reader_info, NULL);
	png_destroy_write_struct(&job.writer, &job.writer_info);
	free(job.pixels);
	free(job.rows);
	ret_size[0] = job.width;
	ret_size[1] = job.height;
	return job.why;
}

/* ---- the others: what their headers say ---- */

static const char *check_sides(uint32_t width, uint32_t height, png_uint_32 ret_size[2])
{
	ret_size[0] = width;
	ret_size[1] = height;
	if (width == 0 || height == 0)
		return "an image without pixels";
	return width > 65535 || height > 65535 || (uint64_t)width * height > PIXELS_MAX ? "an image of more than 40 million pixels" : NULL;
}

/* ITU-T T.81, annex B: markers up to the frame header (SOF), which has the size; the end of the image closes the file. */
static const char *check_jpeg(const unsigned char *p, size_t len, png_uint_32 ret_size[2])
{
	size_t at = 2;

	if (len < 4 || p[0] != 0xff || p[1] != 0xd8)
		return "no JPEG";
	if (p[len - 2] != 0xff || p[len - 1] != 0xd9)
		return "a JPEG without an end";
	while (len - at > 9) {
		const unsigned char marker = p[at + 1];
		const size_t size = (size_t)p[at + 2] << 8 | p[at + 3];
		if (p[at] != 0xff || marker < 0xc0 || marker == 0xd9 || marker == 0xda || size < 2 || size > len - at - 2)
			break;
		if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc)
			return check_sides((uint32_t)p[at + 7] << 8 | p[at + 8], (uint32_t)p[at + 5] << 8 | p[at + 6], ret_size);
		at += 2 + size;
	}
	return "a JPEG without a size";
}

static const char *check_gif(const unsigned char *p, size_t len, png_uint_32 ret_size[2])
{
	if (len < 13 || (memcmp(p, "GIF87a", 6) != 0 && memcmp(p, "GIF89a", 6) != 0))
		return "no GIF";
	return check_sides((uint32_t)p[7] << 8 | p[6], (uint32_t)p[9] << 8 | p[8], ret_size);
}

static const char *check_webp(const unsigned char *p, size_t len, png_uint_32 ret_size[2])
{
	ret_size[0] = ret_size[1] = 0; /* three forms of header; viewers look for themselves */
	return len < 16 || memcmp(p, "RIFF", 4) != 0 || memcmp(p + 8, "WEBP", 4) != 0 ? "no WebP" : NULL;
}

int ks_job_image(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf again = { 0 };
	png_uint_32 size[2] = { 0, 0 };
	size_t len;
	const char *mime = ks_unpack_bytes(in, NULL), *why;
	const unsigned char *data = (const unsigned char *)ks_unpack_bytes(in, &len);

	(void)run;
	(void)err;
	if (!ks_unpack_end(in))
		ks_run_damaged();
	if (strcmp(mime, "image/png") == 0)
		why = check_png(data, len, &again, size);
	else if (strcmp(mime, "image/jpeg") == 0)
		why = check_jpeg(data, len, size);
	else if (strcmp(mime, "image/gif") == 0)
		why = check_gif(data, len, size);
	else
		why = check_webp(data, len, size);
	ks_pack_string(ret_result, why);
	ks_pack_int(ret_result, size[0]);
	ks_pack_int(ret_result, size[1]);
	ks_pack_bytes(ret_result, again.data ? again.data : "", why ? 0 : again.len);
	return 0;
}
