#include "base/text.h"

#include <string.h>

void text_clear(struct text *text) {
  text->length = 0;
  text->is_cut = false;
}

void text_add_part(struct text *text, const char *bytes, size_t length) {
  /* One byte stays free for the end of a string. */
  if (length > TEXT_BYTES - 1 - text->length) {
    text->is_cut = true;
    return;
  }
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
}

void text_add(struct text *text, const char *string) { text_add_part(text, string, strlen(string)); }

void text_add_number(struct text *text, int64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  uint64_t rest = number < 0 ? (uint64_t)0 - (uint64_t)number : (uint64_t)number;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (number < 0) text_add(text, "-");
  text_add_part(text, digits + at, sizeof digits - at);
}

void text_add_pair(struct text *text, const char *key, const char *value) {
  text_add(text, key);
  text_add(text, "=");
  text_add(text, value);
  text_add(text, "\n");
}

void text_add_count(struct text *text, const char *key, int64_t value) {
  text_add(text, key);
  text_add(text, "=");
  text_add_number(text, value);
  text_add(text, "\n");
}

const char *text_string(struct text *text) {
  text->bytes[text->length] = '\0';
  return text->bytes;
}

bool has_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words;; at++) {
    size_t found = strcspn(at, ",");
    if (found == length && strncmp(at, word, length) == 0) return true;
    at += found;
    if (*at == '\0') return false;
  }
}
