/* Text in a buffer of fixed size. What does not fit is left out and marked; every text of ours fits by far. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the largest text, the outcome, four times over. */
#define TEXT_BYTES 4096

struct text {
  size_t length;
  bool is_cut;
  char bytes[TEXT_BYTES];
};

void text_clear(struct text *text);
void text_add(struct text *text, const char *string);
void text_add_part(struct text *text, const char *bytes, size_t length);
void text_add_number(struct text *text, int64_t number);

/* A line `key=value`. */
void text_add_pair(struct text *text, const char *key, const char *value);
void text_add_count(struct text *text, const char *key, int64_t value);

/* The text as a string, for paths. */
const char *text_string(struct text *text);

/* Whether the comma-separated `words` contain `word`. */
bool has_word(const char *words, const char *word);

#endif
