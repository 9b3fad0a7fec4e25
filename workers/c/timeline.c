/* See timeline.h. */
#include "timeline.h"

#include <string.h>

void timeline_clear(struct timeline *c, uint64_t duration_ns)
{
  memset(c, 0, sizeof *c);
  c->slice_ns = duration_ns / SLICES;
}

void timeline_start(struct timeline *c, uint64_t start_ns)
{
  c->start_ns = start_ns;
  c->end_ns = c->slice_ns ? start_ns + c->slice_ns : UINT64_MAX;
}

void timeline_advance(struct timeline *c, uint64_t now_ns)
{
  uint64_t at = (now_ns - c->start_ns) / c->slice_ns;
  c->at = at < MOST_SLICES ? (uint32_t)at : MOST_SLICES - 1;
  c->end_ns = c->at == MOST_SLICES - 1 ? UINT64_MAX : c->start_ns + (c->at + 1) * c->slice_ns;
}

void timeline_add(struct timeline *to, const struct timeline *from)
{
  to->at = from->at > to->at ? from->at : to->at;
  for (uint32_t i = 0; i <= from->at; i++) {
    to->slices[i].ok += from->slices[i].ok;
    to->slices[i].response_ns += from->slices[i].response_ns;
  }
}
