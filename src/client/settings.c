#include "client/settings.h"

static const struct option setting_options[] = {
    {"json", OPTION_FLAG, offsetof(struct settings, json)},
    {"wide", OPTION_FLAG, offsetof(struct settings, is_wide)},
    {"quiet", OPTION_FLAG, offsetof(struct settings, quiet)},
    {"no_color", OPTION_FLAG, offsetof(struct settings, no_color), .environment = "NO_COLOR"},
    {"server", OPTION_LIST, offsetof(struct settings, servers), "URL"},
    {"fingerprint", OPTION_TEXT, offsetof(struct settings, fingerprint), "HEX"},
    {"token", OPTION_TEXT, offsetof(struct settings, token), "TOKEN", .is_secret = true},
    {"config_dir", OPTION_PATH, offsetof(struct settings, config_dir), "DIR"},
};

static const struct command no_command = {.name = "settings"};
static const struct command *const no_commands[] = {&no_command, NULL};
static const struct program settings_program = {
    .name = "souk",
    .common = setting_options,
    .common_count = sizeof(setting_options) / sizeof(*setting_options),
    .commands = no_commands,
    .has_others = true,
};

int settings_read(struct arena *arena, const struct option_sources *sources, struct settings *out,
                  struct error *error)
{
    bool wants_help;
    int none = 0;
    *out = (struct settings){0};
    return options_parse(arena, &settings_program, &no_command, sources, out, &none, &wants_help,
                         error);
}
