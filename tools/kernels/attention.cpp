#include "tools/kernels/attention.hpp"

#include <limits>

#include "reference/attention/selection.hpp"

namespace plumbline {
namespace {

attention::Selection selection_of(const Json& options, const MaskView& view) {
  attention::Selection selection;
  selection.selected = view.selected, selection.indices = view.indices;
  selection.strict = options.at("strict_selection").get<bool>();
  const std::string duplicates = options.at("duplicates").get<std::string>();
  selection.duplicates = duplicates == "set"        ? attention::Duplicates::set
                         : duplicates == "multiset" ? attention::Duplicates::multiset
                                                    : attention::Duplicates::error;
  return selection;
}

device::LseForm lse_form_of(const Json& options, bool has_sink) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  device::LseForm form;
  form.base_two = options.at("lse_base") == "2" || options.at("lse_base") == 2;
  form.counts_sink = options.at("lse_includes_sink").get<bool>() && has_sink;
  const Json& empty = options.at("empty_lse");
  form.empty_is_sink = empty.is_null() && form.counts_sink;
  form.empty = empty.is_null() || empty == "-inf" ? -infinity : empty == "+inf" ? infinity : 0.f;
  return form;
}

bool neighbours(const std::vector<std::int64_t>& keys) {
  return keys.empty() || keys.back() - keys.front() == static_cast<std::int64_t>(keys.size()) - 1;
}

// Slots are scattered and some left empty, as a kernel's caller may have them.
void add_who_sees_whom(Bench& bench, device::Attention& args, const Json& options,
                       const MaskView& view) {
  const Visibility& sees = view.visibility;
  const attention::Selection selection = selection_of(options, view);
  std::vector<std::vector<std::int64_t>> near, far;
  bool stretches = !view.window && !selection.indices.given() && !selection.selected.given();
  for (std::int64_t b = 0; b < args.batch; ++b) {
    for (std::int64_t t = 0; t < args.rows; ++t) {
      const bool real = sees.real(b, t);
      const bool has_keys = real && (view.m > 0 || !view.window);
      far.push_back(has_keys ? attention::keys_of(selection, sees, b, t)
                             : std::vector<std::int64_t>());
      near.push_back(real && view.window ? sees.window(b, t, *view.window)
                                         : std::vector<std::int64_t>());
      stretches = stretches && neighbours(far.back());
    }
  }
  if (stretches) std::swap(near, far);
  std::vector<std::int32_t> stretch;
  std::size_t most = 0;
  for (std::size_t i = 0; i < near.size(); ++i) {
    const auto rows = static_cast<std::size_t>(args.rows);
    const bool real =
        sees.real(static_cast<std::int64_t>(i / rows), static_cast<std::int64_t>(i % rows));
    stretch.push_back(near[i].empty() ? 0 : static_cast<std::int32_t>(near[i].front()));
    stretch.push_back(real ? static_cast<std::int32_t>(near[i].size()) : -1);
    most = std::max(most, far[i].size());
  }
  args.stretch = bench.table("stretch", stretch);
  if (most == 0) return;
  args.slots = static_cast<std::int64_t>(most) + 2;
  std::vector<std::int32_t> slot;
  for (const std::vector<std::int64_t>& keys : far) {
    std::vector<std::int32_t> row(static_cast<std::size_t>(args.slots), -1);
    for (std::size_t j = 0; j < keys.size(); ++j)
      row[j + (2 * j >= keys.size() ? 1 : 0)] = static_cast<std::int32_t>(keys[j]);
    slot.insert(slot.end(), row.begin(), row.end());
  }
  args.slot = bench.table("slot", slot);
}

}  // namespace

device::Attention attention_on(Bench& bench, const Problem& problem, const Json& options,
                               const MaskView& view) {
  const StoredTensor& query = problem.in.at("query");
  device::Attention args;
  args.type = type_of(problem);
  args.batch = query.size(0), args.rows = query.size(1);
  args.heads = query.size(2), args.width = args.value_width = query.size(3);
  args.query = bench.input(query);
  args.sink = bench.input(or_none(problem.in, "sink"));
  args.scale = options.at("softmax_scale").get<float>();
  args.lse_form = lse_form_of(options, args.sink != nullptr);
  add_who_sees_whom(bench, args, options, view);
  return args;
}

void attention_results(Bench& bench, device::Attention& args, const Problem& problem,
                       bool max_logit) {
  const Shape heads = {args.batch, args.rows, args.heads};
  args.output = bench.result("out.output", {args.batch, args.rows, args.heads, args.value_width},
                             problem.in.at("query").dtype);
  args.lse = static_cast<float*>(bench.result("out.lse", heads, Dtype::f32));
  if (max_logit)
    args.max_logit = static_cast<float*>(bench.result("out.max_logit", heads, Dtype::f32));
}

device::AttentionBackward attention_back_on(Bench& bench, const device::Attention& args,
                                            const Problem& problem) {
  device::AttentionBackward back;
  back.of = args;
  back.doutput = bench.input(problem.cot.at("output"));
  back.dlse = bench.input(or_none(problem.cot, "lse"));
  back.dquery = bench.gradient("query", problem.in.at("query").shape);
  back.dsink = gradient_of(bench, problem, "sink");
  return back;
}

Json attention_contract(const Problem& problem) {
  Json contract;
  if (type_of(problem) == device::Type::bf16) {
    contract = {{"preset", "bf16_f32acc"}};
  } else {
    contract["algebra"] = {{"softmax", "online"}, {"tile", 32}};
  }
  contract["name"] = "attention naive";
  contract["ulp"] = {{"exp", 3}};  // a product and a correction around exp2
  contract["flush_to_zero"] = true;
  return contract;
}

}  // namespace plumbline
