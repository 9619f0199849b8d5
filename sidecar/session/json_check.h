/* json_check.h: whether text from a box is one strict JSON value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

bool ks_json_valid(const char *text, size_t len, bool object);
