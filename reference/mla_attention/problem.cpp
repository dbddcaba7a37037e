#include "reference/mla_attention/problem.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::mla_attention {
namespace {

void need(const StoredTensor& tensor, std::string_view name, const std::string& why) {
  if (!tensor.given()) throw Error("in." + std::string(name), "nothing", "the tensor: " + why);
}
void exclude(const StoredTensor& tensor, const std::string& why) {
  if (tensor.given()) throw Error(tensor.name, "the tensor", "none: " + why);
}
std::int64_t need_width(const std::optional<std::int64_t>& width, std::string_view name,
                        const std::string& why) {
  const std::string where = "option " + std::string(name);
  if (!width) throw Error(where, "nothing", "a number of channels: " + why);
  if (*width < 1) throw Error(where, std::to_string(*width), "at least 1");
  return *width;
}

void check_latent(const Inputs& in, const Options& options, Sizes& sizes) {
  const std::string why = "the latent form is kv_latent, k_pe and wkv_b (and bkv_b)";
  for (const StoredTensor* tensor : {&in.key, &in.value})
    exclude(*tensor, why + ", which make keys and values");
  need(in.kv_latent, "kv_latent", why);
  need(in.k_pe, "k_pe", why);
  need(in.wkv_b, "wkv_b", why);
  sizes.set("dn", need_width(options.nope_dim, "nope_dim", why), "option nope_dim");
  sizes.set("dv", need_width(options.v_dim, "v_dim", why), "option v_dim");
  sizes.set("Dv", *options.v_dim, "option v_dim");
}

void check_keys(const Inputs& in, const Options& options, Sizes& sizes) {
  need(in.key, "key", "or the latent form, kv_latent, k_pe and wkv_b");
  if (!in.value.given())
    need_width(options.v_dim, "v_dim", "without in.value it says which channels of key are one");
  if (options.v_dim) sizes.set("Dv", need_width(options.v_dim, "v_dim", ""), "option v_dim");
}

// Widths whose relation no letter says.
void check_sizes(const Inputs& in, const Options& options, bool latent, const Sizes& sizes) {
  const std::int64_t width = sizes["D"];
  if (latent) {
    if (width == sizes["dn"] + sizes["dr"]) return;
    throw Error(
        in.query.name, "D = " + std::to_string(width),
        "nope_dim + dr = " + std::to_string(sizes["dn"]) + " + " + std::to_string(sizes["dr"]));
  }
  if (sizes["H"] % sizes["Hk"] != 0) {
    throw Error(in.key.name, "Hk = " + std::to_string(sizes["Hk"]),
                "a divisor of H = " + std::to_string(sizes["H"]));
  }
  if (!in.value.given() && sizes["Dv"] > width) {
    throw Error("option v_dim", std::to_string(sizes["Dv"]),
                "at most the width of key, " + std::to_string(width));
  }
  if (options.nope_dim && (*options.nope_dim < 0 || *options.nope_dim > width)) {
    throw Error("option nope_dim", std::to_string(*options.nope_dim),
                "0 to the width of key, " + std::to_string(width));
  }
}

Latent latent_of(const Inputs& in, const Sizes& sizes) {
  return {in.kv_latent, in.k_pe,      in.wkv_b,    in.bkv_b,    sizes["B"], sizes["S"],
          sizes["H"],   sizes["Rkv"], sizes["dn"], sizes["dr"], sizes["dv"]};
}

std::vector<attention::Source> sources_of(const Inputs& in,
                                          const Sizes& sizes) {  // gradients: 0 key, 1 value
  const attention::Part value = in.value.given() ? attention::Part{in.value, 0, sizes["Dv"], 1}
                                                 : attention::Part{in.key, 0, sizes["Dv"], 0};
  const attention::Part key{in.key, 0, sizes["D"], 0};
  return {attention::Source{{key}, {value}}};
}

}  // namespace

Form check(const Inputs& in, const Options& options, const Schedule& schedule, Sizes& sizes) {
  attention::check({in.selected, in.indices, options.strict_selection, options.duplicates});
  const bool latent =
      in.kv_latent.given() || in.k_pe.given() || in.wkv_b.given() || in.bkv_b.given();
  if (latent) {
    check_latent(in, options, sizes);
  } else {
    check_keys(in, options, sizes);
    if (schedule.absorbed)
      throw Error("schedule.absorbed", "true", "false: keys that are given have nothing to absorb");
  }
  Inputs named = in;
  sizes.unify_all(named);
  check_sizes(in, options, latent, sizes);
  return !latent ? Form::keys : schedule.absorbed ? Form::absorbed : Form::expanded;
}

template <class T> Problem<T>::Problem(const Inputs& in, const Options& options, const Run& run)
    : form(check(in, options, run.schedule, sizes)),
      visibility(options.mask, in.mask, sizes, Blocks{}, options.tokens),
      selection{in.selected, in.indices, options.strict_selection, options.duplicates},
      setting{options,      visibility,         {},      {},
              in.query,     sizes["Dv"],        in.sink, in.given_output,
              in.given_lse, in.given_max_logit, nullptr} {
  setting.keys = [this](std::int64_t b, std::int64_t t) {
    std::vector<attention::RowKey> keys;
    for (const std::int64_t key : attention::keys_of(selection, visibility, b, t))
      keys.push_back({0, key});
    return keys;
  };
  if (form == Form::keys) {
    setting.sources = sources_of(in, sizes);
  } else if (form == Form::absorbed) {
    absorbed = std::make_unique<Absorbed<T>>(latent_of(in, sizes));
    setting.map = absorbed.get();
    setting.sources = absorbed->sources();
  } else {
    std::vector<char> seen(static_cast<std::size_t>(sizes["B"] * sizes["S"]), 0);
    for (std::int64_t b = 0; b < visibility.batch(); ++b) {
      for (std::int64_t t = 0; t < visibility.rows(); ++t) {
        if (!visibility.real(b, t)) continue;
        for (const attention::RowKey& key : setting.keys(b, t)) {
          seen[static_cast<std::size_t>(b * visibility.tokens() + key.key)] = 1;
        }
      }
    }
    expanded = std::make_unique<Expanded<T>>(latent_of(in, sizes), std::move(seen), run);
    setting.sources = expanded->sources();
  }
}

template <class T> void Problem<T>::count_bytes(const Run& run, std::int64_t arrays) const {
  if (expanded && run.work != nullptr) run.work->peak_bytes += arrays * expanded->bytes();
}

#define INSTANTIATE(T) template struct Problem<T>;
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::mla_attention
