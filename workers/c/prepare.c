/* The request `prepare`, and the refusals before the prefill. */
#include "prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kind_set every_kind(void)
{
  kind_set quiet =
      QUIET(SET) | QUIET(ADD) | QUIET(REPLACE) | QUIET(DELETE) | QUIET(TOUCH) | QUIET(MSET) | QUIET(INCR) | QUIET(DECR);
  return quiet | IN_SET(GET) | IN_SET(GETS) | IN_SET(MGET) | IN_SET(SET) | IN_SET(ADD) | IN_SET(REPLACE)
      | IN_SET(DELETE) | IN_SET(TOUCH) | IN_SET(GAT) | IN_SET(VERSION) | IN_SET(MSET) | IN_SET(CAS) | IN_SET(INCR)
      | IN_SET(DECR);
}

const char *option_value(const struct setup *setup, const char *name, const char *otherwise)
{
  for (unsigned i = 0; i < setup->option_count; i++)
    if (!strcmp(setup->options[i].name, name))
      return setup->options[i].value;
  return otherwise;
}

bool is_on(const struct setup *setup, const char *name, const char *otherwise)
{
  return !strcmp(option_value(setup, name, otherwise), "on");
}

bool is_common(const struct setup *setup)
{
  return !strcmp(option_value(setup, "profile", "common"), "common");
}

static bool read_servers(json_t *servers, struct setup *setup)
{
  size_t count = json_array_size(servers);
  if (!json_is_array(servers) || count > MOST_SERVERS)
    return false;
  for (size_t i = 0; i < count; i++)
    if (!(setup->servers[setup->server_count++] = json_string_value(json_array_get(servers, i))))
      return false;
  return true;
}

bool read_login(const struct setup *setup, struct login *login, char *reason)
{
  const char *text = option_value(setup, "auth", NULL);
  if (!text || *reason)
    return false;
  const char *file = strchr(text, ':') + 1;
  snprintf(login->user, sizeof login->user, "%.*s", (int)(file - 1 - text), text);
  FILE *lines = fopen(file, "r");
  bool read = lines && fgets(login->password, sizeof login->password, lines);
  if (!read)
    snprintf(reason, REASON_SIZE, "auth: %s cannot be read", file);
  if (lines)
    fclose(lines);
  login->password[strcspn(login->password, "\r\n")] = 0;
  return read;
}

static bool read_options(json_t *options, struct setup *setup)
{
  const char *name;
  json_t *value;
  json_object_foreach (options, name, value) {
    if (setup->option_count == sizeof setup->options / sizeof *setup->options || !json_is_string(value))
      return false;
    setup->options[setup->option_count++] = (struct option){name, json_string_value(value)};
  }
  return true;
}

/* A number of at least `least`, or the default `otherwise`. */
static bool read_number(json_t *object, uint64_t otherwise, json_int_t least, uint64_t *to)
{
  *to = object ? (uint64_t)json_integer_value(object) : otherwise;
  return !object || (json_is_integer(object) && json_integer_value(object) >= least);
}

bool read_setup(json_t *request, struct setup *setup, char *text)
{
  memset(setup, 0, sizeof *setup);
  json_t *segment = json_object_get(request, "segment");
  setup->wire = json_string_value(json_object_get(request, "wire"));
  if (!setup->wire)
    setup->wire = "text";
  const char *wrong = !json_is_string(json_object_get(request, "tape"))                                 ? "tape"
      : !read_servers(json_object_get(request, "servers"), setup)                                       ? "servers"
      : !read_options(json_object_get(request, "options"), setup)                                       ? "options"
      : !read_number(json_object_get(request, "threads"), 1, 1, &setup->threads)                        ? "threads"
      : !read_number(json_object_get(request, "connections"), 1, 1, &setup->connections)                ? "connections"
      : !read_number(json_object_get(request, "depth"), 1, 1, &setup->depth)                            ? "depth"
      : !read_number(json_object_get(request, "timeout_ms"), 1000, 1, &setup->timeout_ms)               ? "timeout_ms"
      : !read_number(json_array_get(segment, 0), 0, 0, &setup->share)                                   ? "segment"
      : !read_number(json_array_get(segment, 1), 1, 1, &setup->shares) || setup->share >= setup->shares ? "segment"
                                                                                                        : NULL;
  if (wrong)
    snprintf(text, TEXT_SIZE, "prepare without a possible `%s`", wrong);
  return !wrong;
}

/* Whether a text is one of the values that an option may have; N is any number, USER:FILE a login. */
static bool is_value(const char *possible, const char *text)
{
  size_t size = strlen(text);
  if (!strcmp(possible, "N"))
    return size > 0 && size < 10 && strspn(text, "0123456789") == size;
  if (!strcmp(possible, "USER:FILE"))
    return strchr(text, ':') > text;
  return !strcmp(possible, text);
}

/* Whether "name=value|…" is among a client's options. */
static bool is_known(const char *options, const struct option *option)
{
  char words[TEXT_SIZE], *rest = words;
  snprintf(words, sizeof words, "%s", options);
  for (char *word; (word = strsep(&rest, " "));) {
    char *values = strchr(word, '=');
    if (!values)
      continue;
    *values++ = 0;
    for (char *value; !strcmp(word, option->name) && (value = strsep(&values, "|"));)
      if (is_value(value, option->value))
        return true;
  }
  return false;
}

bool has_word(const char *words, const char *word)
{
  size_t size = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at += size)
    if ((at == words || at[-1] == ' ') && (at[size] == ' ' || !at[size]))
      return size > 0;
  return false;
}

static void refuse_option(const struct client *client, const struct option *option, char *text)
{
  bool renews = client->renew && !strcmp(option->name, "reconnect_after");
  uint64_t calls = renews && strspn(option->value, "0123456789") == strlen(option->value) && strlen(option->value) < 19
      ? strtoull(option->value, NULL, 10)
      : 0;
  if (renews && !calls)
    snprintf(text, TEXT_SIZE, ": option reconnect_after is a number from 1 on, not %s", option->value);
  else if (!renews && !is_known(client->options, option))
    snprintf(text, TEXT_SIZE, ": no option %s=%s; it has: %s", option->name, option->value,
        *client->options ? client->options : "none");
}

static void refuse_kinds(const struct client *client, const struct tape *tape, char *text)
{
  size_t used = 0;
  for (int kind = 0; kind < KINDS; kind++)
    if (tape->kinds & ~client->kinds & (kind_set)1 << kind)
      used += (size_t)snprintf(text + used, TEXT_SIZE - used, "%s%s", used ? ", " : ": no ", kind_name(kind));
}

void refuse(const struct client *client, const struct setup *setup, const struct tape *tape, char *text)
{
  bool unix_path = false;
  for (unsigned i = 0; i < setup->server_count; i++)
    unix_path |= !strncmp(setup->servers[i], "unix:", 5);
  bool in_process = has_word(client->capabilities, "none");
  const char *no = in_process && setup->server_count         ? "it is in this process and takes no servers"
      : !in_process && !setup->server_count                  ? "it needs a server"
      : unix_path && !has_word(client->capabilities, "unix") ? "no Unix sockets"
      : setup->server_count > 1 && !has_word(client->capabilities, "cluster") ? "one server only"
      : tape->thinks                                                          ? "no time to think between operations"
      : setup->depth > 1                     ? "one operation at a time on a connection (depth 1)"
      : setup->connections != setup->threads ? "one connection for each thread"
                                             : NULL;
  bool wire = (!strcmp(setup->wire, "none") || !strcmp(setup->wire, "text") || !strcmp(setup->wire, "binary"))
      && has_word(client->capabilities, setup->wire);
  if (no)
    snprintf(text, TEXT_SIZE, ": %s", no);
  else if (!wire)
    snprintf(text, TEXT_SIZE, ": no wire %s", setup->wire);
  else
    refuse_kinds(client, tape, text);
  for (unsigned i = 0; !*text && i < setup->option_count; i++)
    refuse_option(client, &setup->options[i], text);
  char reason[TEXT_SIZE - 2] = "";
  if (!*text && client->refuse && (client->refuse(setup, tape, reason), *reason))
    snprintf(text, TEXT_SIZE, ": %s", reason);
}
