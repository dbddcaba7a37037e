#include "reference/registry/description.hpp"

namespace plumbline {
namespace {

Json to_json(const std::vector<TensorInfo>& infos) {
  Json list = Json::array();
  for (const TensorInfo& info : infos) {
    list.push_back({{"name", info.name},
                    {"shape", info.letters},
                    {"kind", name_of(info.kind)},
                    {"required", info.required},
                    {"differentiable", info.differentiable},
                    {"doc", info.doc}});
  }
  return list;
}

Json to_json(const std::vector<OptionInfo>& infos) {
  Json list = Json::array();
  for (const OptionInfo& info : infos) {
    Json option = {
        {"name", info.name}, {"type", info.type}, {"default", info.fallback}, {"doc", info.doc}};
    if (!info.choices.empty()) option["choices"] = info.choices;
    if (!info.inner.empty()) option["options"] = to_json(info.inner);
    list.push_back(std::move(option));
  }
  return list;
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::real: return "real";
    case Kind::integer: return "integer";
    case Kind::boolean: return "boolean";
  }
  return {};
}

Json description_of(const Operation& operation) {
  Json json = {{"name", operation.name},
               {"summary", operation.summary},
               {"formula", operation.formula},
               {"inputs", to_json(operation.inputs)},
               {"given", to_json(operation.given)},
               {"cotangents", to_json(operation.cotangents)},
               {"options", to_json(operation.options)},
               {"schedule", operation.honours},
               {"outputs", Json::array()},
               {"presets", Json::array()}};
  for (const OutputInfo& info : operation.outputs) {
    json["outputs"].push_back({{"name", info.name},
                               {"shape", info.letters},
                               {"kind", name_of(info.kind)},
                               {"on_request", info.on_request},
                               {"doc", info.doc}});
  }
  for (const PresetInfo& info : operation.presets) {
    json["presets"].push_back({{"name", info.name}, {"doc", info.doc}, {"options", info.options}});
  }
  return json;
}

}  // namespace plumbline
