#pragma once
// What every warp-wide helper needs.

static constexpr int WARP = 32;
static constexpr unsigned FULL_MASK = 0xffffffffu;
