#include "base/fault.h"

#define NAME_OF(step, name, voice) [step] = name,
static const char *const NAMES[] = {STEPS(NAME_OF)};

#define LAUNCH false
#define SANDBOX true
#define VOICE_OF(step, name, voice) [step] = voice,
static const bool IS_SANDBOX[] = {STEPS(VOICE_OF)};

const char *step_name(enum step step) { return NAMES[step]; }

bool is_sandbox_step(enum step step) { return IS_SANDBOX[step]; }
