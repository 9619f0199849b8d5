/* test_blob.c: the blob store: life, death, caps and hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/blob.h"

static struct ks_blobs *store(size_t max)
{
	struct ks_blobs *blobs = NULL;
	struct ks_error err;

	assert_int_equal(ks_blobs_new(max, &blobs, &err), 0);
	return blobs;
}

static struct ks_blob *add(struct ks_blobs *blobs, const void *owner, const char *text)
{
	struct ks_blob *blob = NULL;
	struct ks_error err;

	assert_int_equal(ks_blob_copy(blobs, owner, text, strlen(text), "text/plain", &blob, &err), 0);
	return blob;
}

static enum ks_reason find(struct ks_blobs *blobs, const char *id)
{
	struct ks_blob *blob = NULL;
	struct ks_error err;

	if (ks_blob_find(blobs, id, &blob, &err) == 0) {
		assert_string_equal(ks_blob_id(blob), id);
		return KS_E_NONE;
	}
	assert_string_equal(err.pointer, "/id");
	return err.reason;
}

static void copy_id(char *to, const struct ks_blob *blob)
{
	assert_int_equal(strlen(ks_blob_id(blob)), KS_BLOB_ID_BYTES);
	memcpy(to, ks_blob_id(blob), KS_BLOB_ID_BYTES + 1);
}

/* The digests are FIPS 180-4's examples for "", "abc" and the 448-bit message. */
static void test_sha256(void **state)
{
	(void)state;
	struct ks_blobs *blobs = store(1000);
	struct ks_error err;
	struct ks_blob *blob = add(blobs, NULL, "");

	assert_string_equal(ks_blob_sha256(blob), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_int_equal(ks_blob_append(blobs, blob, "abc", 3, &err), 0);
	assert_string_equal(ks_blob_sha256(blob), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(ks_blob_sha256(blob), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	blob = add(blobs, NULL, "abcdbcdecdefdefgefghfghighijhi");
	(void)ks_blob_sha256(blob);
	assert_int_equal(ks_blob_append(blobs, blob, "jkijkljklmklmnlmnomnopnopq", 26, &err), 0);
	assert_string_equal(ks_blob_sha256(blob), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	ks_blobs_free(blobs);
}

static void test_take_keeps_the_buffer(void **state)
{
	(void)state;
	struct ks_blobs *blobs = store(100);
	struct ks_blob *blob = NULL;
	struct ks_error err;
	char *data = strdup("bytes");

	assert_int_equal(ks_blob_take(blobs, NULL, data, 5, "image/png", &blob, &err), 0);
	assert_ptr_equal(ks_blob_data(blob), data);
	assert_int_equal(ks_blob_size(blob), 5);
	assert_string_equal(ks_blob_mime(blob), "image/png");
	/* Also on failure: valgrind and ASan would see this one leak. */
	assert_int_equal(ks_blob_take(blobs, NULL, malloc(101), 101, "image/png", &blob, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMIT);
	assert_int_equal(ks_blobs_count(blobs), 1);
	ks_blobs_free(blobs);
}

static void test_unknown_freed_and_never_reused(void **state)
{
	(void)state;
	struct ks_blobs *blobs = store(1000);
	char id[KS_BLOB_ID_BYTES + 1];
	struct ks_blob *blob = add(blobs, NULL, "x");

	copy_id(id, blob);
	assert_int_equal(find(blobs, id), KS_E_NONE);
	ks_blob_drop(blobs, blob);
	assert_int_equal(find(blobs, id), KS_E_GONE);
	id[0] = id[0] == '0' ? '1' : '0';
	assert_int_equal(find(blobs, id), KS_E_UNKNOWN_HANDLE);
	assert_int_equal(find(blobs, ""), KS_E_UNKNOWN_HANDLE);
	assert_int_equal(find(blobs, "no-such-blob"), KS_E_UNKNOWN_HANDLE);
	assert_int_equal(find(blobs, "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"), KS_E_UNKNOWN_HANDLE);
	assert_int_equal(ks_blobs_bytes(blobs), 0);
	ks_blobs_free(blobs);
}

static void test_oldest_goes_for_room(void **state)
{
	(void)state;
	struct ks_blobs *blobs = store(10);
	char a[KS_BLOB_ID_BYTES + 1], b[KS_BLOB_ID_BYTES + 1], c[KS_BLOB_ID_BYTES + 1];
	struct ks_blob *blob;
	struct ks_error err;

	copy_id(a, add(blobs, NULL, "1234"));
	copy_id(b, add(blobs, NULL, "5678"));
	copy_id(c, add(blobs, NULL, "90")); /* 10 of 10: all stay */
	assert_int_equal(find(blobs, a), KS_E_NONE);
	assert_int_equal(ks_blobs_bytes(blobs), 10);
	blob = add(blobs, NULL, "x");
	assert_int_equal(find(blobs, a), KS_E_GONE);
	assert_int_equal(find(blobs, b), KS_E_NONE);
	assert_int_equal(ks_blobs_bytes(blobs), 7);
	/* Appending to the oldest never takes the blob itself. */
	assert_int_equal(ks_blob_find(blobs, b, &blob, &err), 0);
	assert_int_equal(ks_blob_append(blobs, blob, "abcde", 5, &err), 0);
	assert_int_equal(find(blobs, b), KS_E_NONE);
	assert_int_equal(find(blobs, c), KS_E_GONE);
	assert_int_equal(ks_blobs_bytes(blobs), 10);
	assert_int_equal(ks_blob_append(blobs, blob, "f", 1, &err), 0); /* takes "x" */
	assert_int_equal(ks_blobs_count(blobs), 1);
	assert_int_equal(ks_blob_append(blobs, blob, "g", 1, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMIT);
	assert_memory_equal(ks_blob_data(blob), "5678abcdef", 10);
	/* Exactly the whole store, and one byte more. */
	char big[11] = { 0 };
	assert_int_equal(ks_blob_copy(blobs, NULL, big, 11, "a/b", &blob, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMIT);
	assert_int_equal(find(blobs, b), KS_E_NONE); /* a refused one costs nobody else */
	assert_int_equal(ks_blob_copy(blobs, NULL, big, 10, "a/b", &blob, &err), 0);
	assert_int_equal(find(blobs, b), KS_E_GONE);
	ks_blobs_free(blobs);
}

static void test_count_cap_and_the_memory_of_the_gone(void **state)
{
	(void)state;
	struct ks_blobs *blobs = store(1000000);
	char first[KS_BLOB_ID_BYTES + 1], second[KS_BLOB_ID_BYTES + 1];

	copy_id(first, add(blobs, NULL, "a"));
	copy_id(second, add(blobs, NULL, "b"));
	for (int i = 2; i < KS_BLOB_COUNT_MAX; i++)
		(void)add(blobs, NULL, "c");
	assert_int_equal(ks_blobs_count(blobs), KS_BLOB_COUNT_MAX);
	assert_int_equal(find(blobs, first), KS_E_NONE);
	(void)add(blobs, NULL, "d");
	assert_int_equal(ks_blobs_count(blobs), KS_BLOB_COUNT_MAX);
	assert_int_equal(ks_blobs_bytes(blobs), KS_BLOB_COUNT_MAX);
	assert_int_equal(find(blobs, first), KS_E_GONE);
	for (int i = 1; i < KS_BLOB_GONE_MAX; i++)
		(void)add(blobs, NULL, "e");
	assert_int_equal(find(blobs, first), KS_E_GONE); /* the 4096th that went since */
	(void)add(blobs, NULL, "f");
	assert_int_equal(find(blobs, first), KS_E_UNKNOWN_HANDLE);
	assert_int_equal(find(blobs, second), KS_E_GONE);
	ks_blobs_free(blobs);
}

static void test_owners_and_expiry(void **state)
{
	(void)state;
	struct ks_blobs *blobs = store(1000);
	int session, run;
	char s[KS_BLOB_ID_BYTES + 1], r[KS_BLOB_ID_BYTES + 1], n[KS_BLOB_ID_BYTES + 1];

	copy_id(s, add(blobs, &session, "s"));
	copy_id(r, add(blobs, &run, "r"));
	copy_id(n, add(blobs, NULL, "n"));
	ks_blobs_release(blobs, &session);
	assert_int_equal(find(blobs, s), KS_E_GONE);
	assert_int_equal(find(blobs, r), KS_E_NONE);
	int64_t before = ks_now_us();
	ks_blobs_expire_owner(blobs, &run, 60000);
	int64_t after = ks_now_us();
	ks_blobs_release(blobs, &run); /* belongs to nobody by now */
	assert_int_equal(find(blobs, r), KS_E_NONE);
	ks_blobs_sweep(blobs, before + 60000000 - 1);
	assert_int_equal(find(blobs, r), KS_E_NONE);
	ks_blobs_sweep(blobs, after + 60000000);
	assert_int_equal(find(blobs, r), KS_E_GONE);
	assert_int_equal(find(blobs, n), KS_E_NONE);
	/* Finding one that has expired does not need the caller's timer. */
	copy_id(r, add(blobs, &run, "r"));
	ks_blobs_expire_owner(blobs, &run, 0);
	assert_int_equal(find(blobs, r), KS_E_GONE);
	ks_blobs_free(blobs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_take_keeps_the_buffer),
		cmocka_unit_test(test_unknown_freed_and_never_reused),
		cmocka_unit_test(test_oldest_goes_for_room),
		cmocka_unit_test(test_count_cap_and_the_memory_of_the_gone),
		cmocka_unit_test(test_owners_and_expiry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
