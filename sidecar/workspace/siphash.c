#include "siphash.h"

static uint64_t read_le(const unsigned char *p, size_t len)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++)
		word |= (uint64_t)p[i] << (8 * i);
	return word;
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], unsigned count)
{
	while (count--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t ks_siphash(const unsigned char key[16], uint64_t salt, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t k0 = read_le(key, 8), k1 = read_le(key + 8, 8);
	/* The paper's constants spell "somepseudorandomlygeneratedbytes". */
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
			  k1 ^ 0x7465646279746573u };
	uint64_t last = (uint64_t)(len + 8) << 56;

	absorb(v, salt);
	for (; len >= 8; p += 8, len -= 8)
		absorb(v, read_le(p, 8));
	absorb(v, last | read_le(p, len));
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
