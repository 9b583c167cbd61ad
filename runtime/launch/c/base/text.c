#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_clear(struct text *text) {
  text->length = 0;
  text->is_cut = false;
  text->bytes[0] = '\0';
}

__attribute__((format(printf, 2, 0))) static void add(struct text *text, const char *format, va_list values) {
  size_t room = TEXT_BYTES - text->length;
  int length = vsnprintf(text->bytes + text->length, room, format, values);
  text->is_cut = text->is_cut || length < 0 || (size_t)length >= room;
  text->length += text->is_cut ? strlen(text->bytes + text->length) : (size_t)length;
}

void text_add(struct text *text, const char *format, ...) {
  va_list values;
  va_start(values, format);
  add(text, format, values);
  va_end(values);
}

const char *text_set(struct text *text, const char *format, ...) {
  text_clear(text);
  va_list values;
  va_start(values, format);
  add(text, format, values);
  va_end(values);
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
