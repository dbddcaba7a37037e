#include "reference/stage_routing/stage_routing.hpp"

#include "reference/error.hpp"
#include "reference/numeric/instantiate.hpp"

namespace plumbline::stage_routing {

Routing route(const Stage& stage) {
  Routing routing{};
  routing.computes_loss = stage.mode == Mode::train && stage.use_indexer && stage.coefficient > 0;
  routing.warm_up = routing.computes_loss && !stage.sparse;
  routing.attends_all = !stage.use_indexer || (stage.model == Model::v4 && routing.warm_up);
  routing.lm_loss = !routing.warm_up;
  return routing;
}

template <class T> Outputs<T> Op::forward(const Inputs&, const Options& options, const Run&) {
  const auto need = [](bool given, const char* name) {
    if (!given) throw Error(std::string("option ") + name, "nothing", "a value: it is required");
  };
  need(options.use_indexer.has_value(), "use_indexer");
  need(options.sparse.has_value(), "sparse");
  need(options.coefficient.has_value(), "coefficient");
  const Routing routing = route(
      {options.model, options.mode, *options.use_indexer, *options.sparse, *options.coefficient});
  const auto flag = [](bool value) { return Array<std::uint8_t>(Shape{}, value ? 1 : 0); };
  return {flag(routing.computes_loss), flag(routing.warm_up), flag(routing.attends_all),
          flag(routing.lm_loss)};
}

#define INSTANTIATE(T) \
  template Outputs<T> Op::forward<T>(const Inputs&, const Options&, const Run&);
PLUMBLINE_EACH_SCALAR(INSTANTIATE)

}  // namespace plumbline::stage_routing
