// The gates of slots that are new (spec 3.3): score, and whether the node lets the diff in.
#include "score.cuh"
#include "wave.cuh"

// A group of `lanes` lanes takes a slot, from slot `first` to the last in use. A gate is computed once a (diff, node).
// Where `dense`, the dot products are there already, dots[b * dots_width + u], and one lane is enough.
extern "C" __global__ void __launch_bounds__(256, 5)
    gate(const int4 *images, const double *lengths, const int32 *interest_rows, const float *interests,
         const int4 *queries, const double *query_lengths, const int8 *knowledge_types, const float *saliences,
         int64 chunks, int64 lanes, int64 dense, const int32 *dots, int64 dots_width, double sigma_min,
         double cos_min, const int32 *rows, const int32 *node_numbers, int64 first, int32 *energies, uint64 *best,
         int32 *hops, double *scores, int32 *rose, int32 *unmet, const int64 *counters) {
    if (counters[OVERFLOW] != 0) return;
    Nodes nodes{{images, chunks}, lengths, interest_rows, interests};
    Diffs diffs{{queries, chunks}, query_lengths, knowledge_types, saliences};
    int64 groups = WARP / lanes, lane = lane_of_warp() % lanes, count = counters[SLOTS] - first;
    for (int64 warp = first_warp(); warp * groups < count; warp += all_warps()) {
        int64 i = warp * groups + lane_of_warp() / lanes, slot = first + i;
        bool given = i < count;
        int64 b = given ? rows[slot] : 0, u = given ? node_numbers[slot] : 0;
        Terms terms = Terms::of(nodes, u);
        int part = 0;
        if (given && dense) part = dots[b * dots_width + u];
        if (given && !dense) part = dot_part(nodes.images.row(u), diffs.images.row(b), chunks, lane, lanes);
        int dot = sum_over_lanes(part, lanes);
        if (!given || lane != 0) continue;
        double cosine = terms.cosine(dot, diffs, b), score = terms.score(cosine, nodes, diffs, b);
        scores[slot] = score;
        energies[slot] = score >= sigma_min && cosine >= cos_min ? OPEN : CLOSED;
        best[slot] = 0;
        hops[slot] = 0;
        rose[slot] = 0;
        unmet[slot] = 0;
    }
}
