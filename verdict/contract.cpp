#include "verdict/contract.hpp"

#include <algorithm>

#include "reference/error.hpp"
#include "reference/registry/option_visitors.hpp"
#include "verdict/contract_fields.hpp"

namespace plumbline {
namespace {

KernelContract ieee(std::string_view name, Format format) {
  KernelContract contract;
  contract.name = name;
  contract.input = contract.storage = contract.output = format;
  contract.accumulator.format = format;
  return contract;
}

// Narrow inputs, products that are exact in f32, sums in f32, an online softmax.
KernelContract kernel(std::string_view name, Format input) {
  KernelContract contract = ieee(name, Format::f32);
  contract.input = input;
  contract.algebra.softmax = Algebra::Softmax::online;
  return contract;
}
KernelContract bf16_f32acc() {
  KernelContract contract = kernel("bf16_f32acc", Format::bf16);
  contract.storage = contract.output = Format::bf16;
  for (const Point point : {Point::proj_out, Point::norm_out, Point::rope_out, Point::probabilities,
                            Point::output, Point::dscores}) {
    contract.rounding_points[static_cast<std::size_t>(point)] = Format::bf16;
  }
  contract.algebra.delta = Algebra::Delta::from_output;
  return contract;
}
KernelContract hopper_bf16() {
  KernelContract contract = bf16_f32acc();
  contract.name = "hopper_bf16";
  contract.accumulator.rounding = Accumulator::Rounding::truncate;
  contract.accumulator.block = 16;
  contract.accumulator.fraction_bits = 25;
  return contract;
}
KernelContract hopper_fp8() {
  KernelContract contract = hopper_bf16();
  contract.name = "hopper_fp8";
  contract.input = Format::f8_e4m3;
  contract.accumulator.block = 32;
  contract.accumulator.fraction_bits = 13;
  contract.accumulator.promotion = 128;
  return contract;
}
KernelContract tf32() {
  KernelContract contract = kernel("tf32", Format::tf32);
  contract.accumulator.rounding = Accumulator::Rounding::truncate;
  return contract;
}

void at_least(double value, double least, const char* key) {
  if (value >= least) return;
  throw Error(std::string("contract.") + key, json_text(nlohmann::json(value)),
              least == 0 ? "a number >= 0" : "a number >= " + json_text(nlohmann::json(least)));
}

void check(const KernelContract& c) {
  const Accumulator& sum = c.accumulator;
  at_least(static_cast<double>(sum.block), 0, "accumulator.block");
  at_least(static_cast<double>(sum.fraction_bits), 0, "accumulator.fraction_bits");
  at_least(static_cast<double>(sum.promotion), 0, "accumulator.promotion");
  if (sum.block == 0 && (sum.fraction_bits > 0 || sum.promotion > 0)) {
    throw Error("contract.accumulator.block", "0 beside fraction_bits or promotion",
                "the products of a block, or neither of them");
  }
  if (sum.block > 0 && (sum.fraction_bits < 1 || sum.fraction_bits > 100)) {
    throw Error("contract.accumulator.fraction_bits", std::to_string(sum.fraction_bits),
                "1 to 100 with a block");
  }
  if (sum.promotion > 0 && sum.promotion < sum.block) {
    throw Error("contract.accumulator.promotion", std::to_string(sum.promotion),
                "0 or at least the block of " + std::to_string(sum.block));
  }
  if (sum.format != Format::f32 && sum.format != Format::f64 && sum.format != Format::f16) {
    throw Error("contract.accumulator.format",
                '"' + std::string(names_of(Format{})[static_cast<std::size_t>(sum.format)]) + '"',
                "f32, f64 or f16");
  }
  at_least(static_cast<double>(c.algebra.tile), 1, "algebra.tile");
  at_least(c.ulp.exp, 0, "ulp.exp"), at_least(c.ulp.exp2, 0, "ulp.exp2");
  at_least(c.ulp.log, 0, "ulp.log"), at_least(c.ulp.rsqrt, 0, "ulp.rsqrt");
  at_least(c.ulp.sin, 0, "ulp.sin"), at_least(c.ulp.cos, 0, "ulp.cos");
  at_least(c.ulp.division, 0, "ulp.division");
}

}  // namespace

std::span<const ContractPreset> contract_presets() {
  static const ContractPreset presets[] = {
      {"ieee_f32", "everything in f32, rounded to nearest, sums in any order",
       ieee("ieee_f32", Format::f32)},
      {"ieee_f64", "everything in f64, rounded to nearest, sums in any order",
       ieee("ieee_f64", Format::f64)},
      {"bf16_f32acc",
       "bf16 tensors and stored intermediates, exact products, sums in f32 to nearest, online "
       "softmax",
       bf16_f32acc()},
      {"hopper_bf16",
       "the same on Hopper's tensor cores: 16 products at once, aligned to the largest and cut off",
       hopper_bf16()},
      {"hopper_fp8",
       "e4m3 inputs on Hopper's tensor cores: 32 products at once with 13 bits kept, moved to f32 "
       "after 128",
       hopper_fp8()},
      {"tf32", "inputs rounded to tf32, sums in f32 with the rest cut off, online softmax", tf32()},
  };
  return presets;
}

const KernelContract& contract_named(std::string_view name) {
  std::vector<std::string> names;
  for (const ContractPreset& preset : contract_presets()) {
    if (preset.name == name) return preset.contract;
    names.emplace_back(preset.name);
  }
  throw Error("contract", json_text(nlohmann::json(std::string(name))),
              "one of " + joined(names) + ", or @FILE");
}

KernelContract contract_from_json(const nlohmann::json& json) {
  KernelContract contract = contract_named("ieee_f32");
  contract.name = "custom";
  OptionReader reader(json, "contract.");
  for (const char* key : {"preset", "name"}) {
    reader.allow(key);
    const auto found = json.find(key);
    if (found == json.end()) continue;
    if (!found->is_string())
      throw Error(std::string("contract.") + key, json_text(*found), "a string");
    const auto text = found->get<std::string>();
    if (key == std::string_view("preset")) {
      contract = contract_named(text);
    } else {
      contract.name = text;
    }
  }
  ContractFields fields(contract);
  fields.fields(reader);
  reader.finish();
  fields.write_back();
  check(contract);
  return contract;
}

nlohmann::json to_json(const KernelContract& contract) {
  KernelContract copy = contract;
  OptionWriter writer;
  ContractFields(copy).fields(writer);
  writer.json["name"] = contract.name;
  return writer.json;
}

Contract contract_in(const nlohmann::json& json) {
  return json.is_string() ? contract_named(json.get<std::string>()) : contract_from_json(json);
}

}  // namespace plumbline
