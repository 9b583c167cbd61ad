#include "secret-search.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* What follows the mark in the secret. All are letters and digits, so that no escape changes them. */
#define REST_BYTES 16

#define WINDOW_BYTES (1024 * 1024)

/* More than a mark in base64, with what follows. */
#define OVERLAP_BYTES 256

static bool is_followed(const char *at, const char *end) {
  if (end - at < REST_BYTES) return false;
  for (size_t i = 0; i < REST_BYTES; i++)
    if (!isalnum((unsigned char)at[i]) && memchr("+/-_", at[i], 4) == NULL) return false;
  return true;
}

static bool has_needle(const char *needle, size_t length, const char *bytes, const char *end) {
  for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), needle, length)) != NULL; at++)
    if (is_followed(at + length, end)) return true;
  return false;
}

/* The characters of base64 that depend on nothing but the mark, where so many bytes (0 to 2) come before it. Their number. */
static size_t in_base64(const char *mark, size_t before, char *text) {
  static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t length = 0;
  unsigned bits = 0, held = 0, skipped = (unsigned)(6 - before * 8 % 6) % 6;
  for (const char *at = mark; *at != '\0'; at++) {
    bits = bits << 8 | (unsigned char)*at;
    held += 8 - skipped;
    skipped = 0;
    for (; held >= 6; held -= 6) text[length++] = DIGITS[bits >> (held - 6) & 63];
  }
  return length;
}

bool has_secret(const char *mark, const void *bytes, size_t length) {
  const char *from = bytes, *end = from + length;
  if (has_needle(mark, strlen(mark), from, end)) return true;
  for (size_t before = 0; before < 3; before++) {
    char text[128];
    if (has_needle(text, in_base64(mark, before, text), from, end)) return true;
  }
  return false;
}

bool is_secret_in_range(const char *mark, int fd, off_t from, off_t to) {
  static char window[WINDOW_BYTES];
  for (off_t at = from; at < to;) {
    size_t wanted = to - at < WINDOW_BYTES ? (size_t)(to - at) : WINDOW_BYTES;
    ssize_t got = pread(fd, window, wanted, at);
    if (got <= 0) return false;
    if (has_secret(mark, window, (size_t)got)) return true;
    at += got <= OVERLAP_BYTES || at + got >= to ? got : got - OVERLAP_BYTES;
  }
  return false;
}
