/* Text in a buffer of fixed size, formatted as by printf. Longer text is cut off, which sets `is_cut`. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Four times the largest text, which is the outcome. */
#define TEXT_BYTES 4096

struct text {
  size_t length;
  bool is_cut;
  /* A string. */
  char bytes[TEXT_BYTES];
};

void text_clear(struct text *text);

__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);

/* Replaces the text. Returns it as a string. */
__attribute__((format(printf, 2, 3))) const char *text_set(struct text *text, const char *format, ...);

/* Whether the comma-separated `words` contain `word`. */
bool has_word(const char *words, const char *word);

#endif
