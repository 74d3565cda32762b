// Which transmissions get lost (spec 3.10).
#include "philox.cuh"

// rounds: rounds and sweeps that the diff had run; diffs: their numbers; out: 0 or 1, of `count` transmissions.
extern "C" __global__ void losses(int64 threshold, int64 seed, int64 epoch_counter, const int64 *rounds,
                                  const int32 *sources, const int32 *targets, const int64 *diffs, int64 count,
                                  int8 *out) {
    Losses losses{threshold, seed, epoch_counter};
    for (int64 i = first_item(); i < count; i += all_threads()) {
        out[i] = losses.hit(rounds[i], sources[i], targets[i], diffs[i]);
    }
}
