// Scores of (diff, node) pairs, and to how many diffs a node's gate is open (spec 3.3).
#include "score.cuh"

// The score of each of `count` pairs; `lanes` lanes, 2^k of at most 32, work on one pair.
extern "C" __global__ void __launch_bounds__(256, 5)
    scores(const int4 *images, const double *lengths, const int32 *interest_rows, const float *interests,
           const int4 *queries, const double *query_lengths, const int8 *knowledge_types, const float *saliences,
           int64 chunks, int64 lanes, const int64 *diff_rows, const int64 *node_rows, int64 count, double *out) {
    Nodes nodes{{images, chunks}, lengths, interest_rows, interests};
    Diffs diffs{{queries, chunks}, query_lengths, knowledge_types, saliences};
    int64 pairs = WARP / lanes, lane = lane_of_warp() % lanes;
    for (int64 warp = first_warp(); warp * pairs < count; warp += all_warps()) {
        int64 i = warp * pairs + lane_of_warp() / lanes;
        bool given = i < count;
        int64 b = given ? diff_rows[i] : 0, u = given ? node_rows[i] : 0;
        Terms terms = Terms::of(nodes, u);
        int part = given ? dot_part(nodes.images.row(u), diffs.images.row(b), chunks, lane, lanes) : 0;
        int dot = sum_over_lanes(part, lanes);
        if (given && lane == 0) out[i] = terms.score(terms.cosine(dot, diffs, b), nodes, diffs, b);
    }
}

// Add to out[i] the number of diffs, of `diff_count`, that the gate of node_rows[i] lets in. `out` starts at 0.
// A group of `lanes` lanes takes one node and SLICE diffs, so that a few nodes with many diffs fill a device too.
inline constexpr int64 SLICE = 32;

extern "C" __global__ void open_counts(const int4 *images, const double *lengths, const int32 *interest_rows,
                                       const float *interests, const int4 *queries, const double *query_lengths,
                                       const int8 *knowledge_types, const float *saliences, int64 chunks, int64 lanes,
                                       double sigma_min, double cos_min, const int32 *node_rows, int64 count,
                                       int64 diff_count, uint64 *out) {
    Nodes nodes{{images, chunks}, lengths, interest_rows, interests};
    Diffs diffs{{queries, chunks}, query_lengths, knowledge_types, saliences};
    int64 groups = WARP / lanes, lane = lane_of_warp() % lanes;
    int64 slices = (diff_count + SLICE - 1) / SLICE, tasks = count * slices;
    for (int64 warp = first_warp(); warp * groups < tasks; warp += all_warps()) {
        int64 task = warp * groups + lane_of_warp() / lanes;
        bool given = task < tasks;
        int64 i = given ? task / slices : 0, first = given ? task % slices * SLICE : diff_count;
        int64 u = given ? node_rows[i] : 0;
        Terms terms = Terms::of(nodes, u);
        uint64 open = 0;
        for (int64 b = first; b < first + SLICE; ++b) {
            int part = b < diff_count ? dot_part(nodes.images.row(u), diffs.images.row(b), chunks, lane, lanes) : 0;
            int dot = sum_over_lanes(part, lanes);
            if (b >= diff_count) continue;
            double cosine = terms.cosine(dot, diffs, b);
            open += cosine >= cos_min && terms.score(cosine, nodes, diffs, b) >= sigma_min;
        }
        if (lane == 0 && open > 0) atomicAdd(&out[i], open);
    }
}

// The same from dot products that are there already: dots[b * dots_width + i] is that of diff b and node_rows[i].
// A thread takes a node, so that neighbours read side by side.
extern "C" __global__ void open_counts_of_dots(const double *lengths, const int32 *interest_rows,
                                               const float *interests, const double *query_lengths,
                                               const int8 *knowledge_types, const float *saliences, double sigma_min,
                                               double cos_min, const int32 *node_rows, int64 count, int64 diff_count,
                                               const int32 *dots, int64 dots_width, uint64 *out) {
    Nodes nodes{{nullptr, 0}, lengths, interest_rows, interests};
    Diffs diffs{{nullptr, 0}, query_lengths, knowledge_types, saliences};
    int64 slices = (diff_count + SLICE - 1) / SLICE;
    for (int64 task = first_item(); task < count * slices; task += all_threads()) {
        int64 i = task % count, first = task / count * SLICE, u = node_rows[i];
        Terms terms = Terms::of(nodes, u);
        uint64 open = 0;
        for (int64 b = first; b < min(first + SLICE, diff_count); ++b) {
            double cosine = terms.cosine(dots[b * dots_width + i], diffs, b);
            open += cosine >= cos_min && terms.score(cosine, nodes, diffs, b) >= sigma_min;
        }
        if (open > 0) atomicAdd(&out[i], open);
    }
}
