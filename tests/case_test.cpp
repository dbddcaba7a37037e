// Cases: metadata and companion tensors that lie, what saving keeps, and what comparing says.
// What it is meant to catch: a wrong type that is taken for a default, a remainder or scale that is dropped in
// silence, results of an older evaluation that survive, a NaN that compares as agreement.
#include "fixtures/case.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "reference/error.hpp"
#include "verdict/compare.hpp"

namespace plumbline {
namespace {

struct Made {  // a tensor of zeros, or of the bytes given
  std::string name;
  Dtype dtype;
  Shape shape;
  std::string bytes = {};
};

SafetensorsFile file_of(const std::vector<Made>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::string data;
  for (const Made& tensor : tensors) {
    const std::size_t begin = data.size(), size = static_cast<std::size_t>(count_of(tensor.shape)) *
                                                  size_of(tensor.dtype);
    data += tensor.bytes.empty() ? std::string(size, '\0') : tensor.bytes;
    header[tensor.name] = {{"dtype", name_of(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string all(8, '\0');
  std::memcpy(all.data(), &length, 8);
  all += text + data;
  std::vector<std::byte> bytes(all.size());
  std::memcpy(bytes.data(), all.data(), all.size());
  return SafetensorsFile::from_memory(std::move(bytes), "f");
}

Case case_of(const std::vector<Made>& tensors, const std::string& metadata = R"({"op":"o"})") {
  return load_case(file_of(tensors, {{"plumbline", metadata}}));
}
std::string error_of(const std::vector<Made>& tensors,
                     const std::string& metadata = R"({"op":"o"})") {
  try {
    case_of(tensors, metadata);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CaseMetadata, Faults) {
  const struct {
    std::string metadata, message;
  } faults[] = {
      {"", "metadata plumbline: found parse error"},
      {"op", "metadata plumbline: found parse error"},
      {"null", "metadata plumbline: found null, expected a JSON object"},
      {"[]", "metadata plumbline: found [], expected a JSON object"},
      {"\"o\"", "metadata plumbline: found \"o\", expected a JSON object"},
      {"{}", "metadata plumbline.op: found nothing, expected the name of an operation"},
      {R"({"op":1})", "metadata plumbline.op: found 1, expected a string"},
      {R"({"op":null})", "metadata plumbline.op: found null, expected a string"},
      {R"({"op":"o","op":"o"})", "metadata plumbline: found the key \"op\" twice"},
      {R"({"op":"o","schema":2})", "metadata plumbline.schema: found 2, expected 1"},
      {R"({"op":"o","schema":"1"})", "metadata plumbline.schema: found \"1\", expected 1"},
      {R"({"op":"o","schema":1.0})", "metadata plumbline.schema: found 1.0, expected 1"},
      {R"({"op":"o","schema":true})", "metadata plumbline.schema: found true, expected 1"},
      {R"({"op":"o","options":[]})", "metadata plumbline.options: found [], expected an object"},
      {R"({"op":"o","options":null})",
       "metadata plumbline.options: found null, expected an object"},
      {R"({"op":"o","options":{"a":1,"a":1}})", "metadata plumbline: found the key \"a\" twice"},
      {R"({"op":"o","options":{"a":NaN}})", "metadata plumbline: found parse error"},
      {R"({"op":"o","options":{"a":1e999}})", "metadata plumbline: found number overflow"},
      {R"({"op":"o","schedule":"x"})",
       "metadata plumbline.schedule: found \"x\", expected an object"},
      {R"({"op":"o","schedule":1})", "metadata plumbline.schedule: found 1, expected an object"},
      {R"({"op":"o","outputs":"all"})",
       "metadata plumbline.outputs: found \"all\", expected an array of strings"},
      {R"({"op":"o","outputs":{}})",
       "metadata plumbline.outputs: found {}, expected an array of strings"},
      {R"({"op":"o","outputs":["a",1]})", "metadata plumbline.outputs: found 1, expected a string"},
      {R"({"op":"o","precision":64})", "metadata plumbline.precision: found 64, expected a string"},
      {R"({"op":"o","precision":"float32"})",
       "metadata plumbline.precision: found \"float32\", expected one of f32,"},
      {R"({"op":"o","x":)" + std::string(40, '[') + std::string(40, ']') + "}",
       "metadata plumbline: found JSON nested deeper than 32 levels"},
      {R"({"op":"o"} {})", "metadata plumbline: found parse error"},
  };
  for (const auto& fault : faults) {
    const std::string message = error_of({}, fault.metadata);
    EXPECT_TRUE(message.starts_with(fault.message)) << fault.metadata << "\n" << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_THROW(load_case(file_of({}, {})), Error);
  EXPECT_THROW(load_case(file_of({}, {{"format", "pt"}})), Error);
}

TEST(CaseMetadata, IsRead) {
  const Case read =
      case_of({}, R"({"op":"o","schema":1,"options":{"m":4},"schedule":{"key_block":2},
                                   "outputs":["a"],"precision":"mp50","peer":{"deep":[1]},"seed":7})");
  EXPECT_EQ(read.op(), "o");
  EXPECT_EQ(read.problem.options, Json({{"m", 4}}));
  EXPECT_EQ(read.problem.schedule, Json({{"key_block", 2}}));
  EXPECT_EQ(read.problem.outputs, std::vector<std::string>{"a"});
  EXPECT_EQ(read.metadata.precision, Precision::mp50);
  const Case bare = case_of({});
  EXPECT_EQ(bare.problem.options, Json::object());
  EXPECT_EQ(bare.problem.schedule, Json::object());
  EXPECT_FALSE(bare.metadata.precision);
}

TEST(CaseTensors, Faults) {
  const Made x{"in.x", Dtype::f32, {4, 6}}, codes{"in.x", Dtype::f8_e4m3, {4, 6}},
      whole{"in.x", Dtype::i32, {4, 6}};
  const struct {
    std::vector<Made> tensors;
    std::string message;
  } faults[] = {
      {{{"x", Dtype::f32, {1}}}, "tensor x: found a name of no known kind, expected one of in.*"},
      {{{"input.x", Dtype::f32, {1}}}, "tensor input.x: found a name of no known kind"},
      {{{"in", Dtype::f32, {1}}}, "tensor in: found a name of no known kind"},
      {{{"bound3.x", Dtype::f32, {1}}}, "tensor bound3.x: found a name of no known kind"},
      {{{"in.", Dtype::f32, {1}}}, "tensor in.: found a name with other characters"},
      {{{"in.x.hi", Dtype::f32, {1}}}, "tensor in.x.hi: found a name with other characters"},
      {{x, {"in.x.lo.lo", Dtype::f64, {4, 6}}},
       "tensor in.x.lo.lo: found a name with other characters"},
      {{codes, {"in.x.scale.lo", Dtype::f64, {1, 1}}},
       "tensor in.x.scale.lo: found a name with other characters"},
      {{{"in.a b", Dtype::f32, {1}}}, "tensor in.a b: found a name with other characters"},
      {{{"in.a\nb", Dtype::f32, {1}}}, "tensor in.a\\nb: found a name with other characters"},
      {{{"cot..lo", Dtype::f64, {1}}}, "tensor cot..lo: found a name with other characters"},
      {{{"in.x.lo", Dtype::f64, {4, 6}}},
       "in.x.lo: found no tensor in.x, expected one that it belongs to"},
      {{{"given.x.lo", Dtype::f64, {4, 6}}, x}, "given.x.lo: found no tensor given.x"},
      {{{"cot.x.lo", Dtype::f64, {4, 6}}, x}, "cot.x.lo: found no tensor cot.x"},
      {{{"in.x.scale", Dtype::f32, {1, 1}}}, "in.x.scale: found no tensor in.x"},
      {{x, {"in.x.lo", Dtype::f32, {4, 6}}}, "in.x.lo: found dtype F32, expected F64"},
      {{x, {"in.x.lo", Dtype::f64, {4, 5}}},
       "in.x.lo: found shape [4, 5], expected [4, 6] like in.x"},
      {{x, {"in.x.lo", Dtype::f64, {24}}}, "in.x.lo: found shape [24], expected [4, 6] like in.x"},
      {{whole, {"in.x.lo", Dtype::f64, {4, 6}}}, "in.x.lo: found a remainder beside I32"},
      {{x, {"in.x.scale", Dtype::f32, {1, 1}}},
       "in.x.scale: found a scale beside F32, expected one beside F8_E4M3"},
      {{codes, {"in.x.scale", Dtype::f64, {1, 1}}}, "in.x.scale: found dtype F64, expected F32"},
      {{codes, {"in.x.scale", Dtype::f32, {1}}},
       "in.x.scale: found shape [1], expected axes of 1 or dividing"},
      {{codes, {"in.x.scale", Dtype::f32, {}}}, "in.x.scale: found shape [], expected axes"},
      {{codes, {"in.x.scale", Dtype::f32, {3, 1}}},
       "in.x.scale: found shape [3, 1], expected axes"},
      {{codes, {"in.x.scale", Dtype::f32, {8, 1}}},
       "in.x.scale: found shape [8, 1], expected axes"},
      {{codes, {"in.x.scale", Dtype::f32, {4, 0}}},
       "in.x.scale: found shape [4, 0], expected axes"},
      {{{"in.x", Dtype::boolean, {3}, std::string("\0\1\2", 3)}},
       "in.x: found the byte 2 at element 2, expected 0 or 1"},
  };
  for (const auto& fault : faults) {
    const std::string message = error_of(fault.tensors);
    EXPECT_TRUE(message.starts_with(fault.message)) << fault.message << "\n" << message;
  }
}

TEST(CaseTensors, CompanionsFindTheirTensors) {
  // Companions stand before and after their tensors in the file.
  const Case read = case_of({{"in.x.lo", Dtype::f64, {4, 6}},
                             {"in.x.scale", Dtype::f32, {2, 1}},
                             {"in.x", Dtype::f8_e5m2, {4, 6}},
                             {"given.x", Dtype::f64, {}},
                             {"given.x.lo", Dtype::f64, {}},
                             {"cot.x", Dtype::bf16, {0, 3}},
                             {"in.lo", Dtype::f32, {1}},
                             {"in.scale", Dtype::f32, {1}},
                             {"in.state.kv", Dtype::f32, {1}},
                             {"in.empty", Dtype::f8_e4m3, {0, 4}},
                             {"in.empty.scale", Dtype::f32, {0, 2}},
                             {"peer.out.anything.goes", Dtype::u8, {1}},
                             {"bound.grad.x", Dtype::f64, {1}}});
  EXPECT_EQ(read.problem.in.size(), 5u);
  const StoredTensor& x = read.problem.in.at("x");
  EXPECT_EQ(x.name, "in.x");
  ASSERT_TRUE(x.low && x.scale);
  EXPECT_EQ(x.low->name, "in.x.lo");
  EXPECT_EQ(x.scale->shape, (Shape{2, 1}));
  EXPECT_TRUE(read.problem.given.at("x").low);
  EXPECT_FALSE(read.problem.cot.at("x").low);
  EXPECT_TRUE(read.problem.in.at("state.kv").given());
}

class Saving : public testing::Test {
 protected:
  Saving() { std::filesystem::create_directory(folder); }
  ~Saving() override { std::filesystem::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("plumbline_case_" + std::to_string(::getpid()));
};

Result some_result() {
  Result result;
  const auto value = [](const char* name, Kind kind, Shape shape) {
    Value made;
    made.name = name, made.kind = kind, made.shape = std::move(shape);
    return made;
  };
  Value loss = value("loss", Kind::real, {}), indices = value("indices", Kind::integer, {2}),
        selected = value("selected", Kind::boolean, {2}), x = value("x", Kind::real, {2});
  loss.high = {1.5}, loss.low = {1e-20};
  indices.integers = {3, -1};
  selected.booleans = {1, 0};
  x.high = {1, 2}, x.low = {0, 0};
  result.outputs = {loss, indices, selected};
  result.gradients = {x};
  return result;
}

TEST_F(Saving, KeepsWhatWasThereAndReplacesResults) {
  const Case from =
      load_case(file_of({{"in.x", Dtype::bf16, {2}, "abcd"},
                         {"peer.out.loss", Dtype::f32, {}, "efgh"},
                         {"out.old", Dtype::f64, {1}},
                         {"grad.old.lo", Dtype::f64, {1}},
                         {"bound2.grad.old", Dtype::f64, {1}}},
                        {{"format", "pt"}, {"plumbline", R"({"z":1,"op":"o","outputs":["a"]})"}}));
  save_result(path("r"), from, some_result(), Precision::mp100);
  const Case saved = load_case(path("r"));
  std::string names;
  for (const FileTensor& tensor : saved.file.tensors()) {
    names += tensor.name + ":" + std::string(name_of(tensor.dtype)) + " ";
  }
  EXPECT_EQ(names,
            "grad.x:F64 grad.x.lo:F64 out.loss:F64 out.loss.lo:F64 peer.out.loss:F32 "
            "out.indices:I32 in.x:BF16 "
            "out.selected:BOOL ");
  const std::span<const std::byte> x = saved.file.data(*saved.file.find("in.x"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(x.data()), x.size()), "abcd");
  EXPECT_EQ(saved.file.metadata().at("format"), "pt");
  EXPECT_EQ(
      saved.file.metadata().at("plumbline"),
      R"({"op":"o","options":{},"outputs":["a"],"precision":"mp100","schedule":{},"schema":1,"z":1})");
  // What was saved can be saved again, onto itself too, without change.
  save_result(path("r2"), saved, some_result(), Precision::mp100);
  save_result(path("r"), saved, some_result(), Precision::mp100);
  std::ifstream a(path("r"), std::ios::binary), b(path("r2"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(a), {}),
            std::string(std::istreambuf_iterator<char>(b), {}));
}

// ---- comparing --------------------------------------------------------------------------------------------------

template <class U> std::string raw(const std::vector<U>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(U)};
}
ComparedFile side(const std::vector<Made>& tensors,
                  std::optional<Precision> precision = std::nullopt) {
  const SafetensorsFile file = file_of(tensors, {});
  ComparedFile compared{"side", {}, precision};
  for (const FileTensor& tensor : file.tensors()) compared.tensors.push_back(file.stored(tensor));
  return compared;
}
Made wide(const std::string& name, const std::vector<double>& values) {
  return {name, Dtype::f64, {static_cast<std::int64_t>(values.size())}, raw(values)};
}
Made narrow(const std::string& name, const std::vector<float>& values) {
  return {name, Dtype::f32, {static_cast<std::int64_t>(values.size())}, raw(values)};
}
TensorComparison first(const ComparedFile& golden, const ComparedFile& actual) {
  return compare(golden, actual).tensors.at(0);
}

TEST(Compare, MeasuresAndPointsAtTheWorst) {
  const TensorComparison t =
      first(side({wide("out.x", {1, -4, 0.5})}),
            side({narrow("peer.out.x", {1, -4 - 0x1p-10f, 0.5f + 0x1p-12f})}));
  EXPECT_EQ(t.agreement, Agreement::disagree);
  EXPECT_EQ(t.actual, "peer.out.x");
  EXPECT_EQ(t.unequal, 2);
  EXPECT_EQ(t.max_absolute, 0x1p-10L);
  EXPECT_EQ(t.max_relative, 0x1p-11L);
  EXPECT_EQ(t.max_scaled, 0x1p-12L);
  EXPECT_EQ(t.max_ulp, 0x1p12L);  // of the third element: an ulp of f32 at 0.5 is 2^-24
  EXPECT_EQ(t.worst, Shape{1});
  EXPECT_EQ(decimal(t.worst_golden) + " " + hexadecimal(t.worst_golden), "-4 -0x1p+2");
  const ComparedFile golden = side({wide("out.x", {1, -4, 0.5})});
  EXPECT_TRUE(compare(golden, side({narrow("out.x", {1, -4 - 0x1p-13f, 0.5f})})).agree);
  EXPECT_FALSE(compare(golden, side({wide("out.x", {1, -4 - 0x1p-13, 0.5})})).agree);
  EXPECT_TRUE(compare(golden, side({wide("out.x", {1, -4 - 0x1p-13, 0.5})}, Precision::f32)).agree);
}

TEST(Compare, RemaindersCount) {
  const ComparedFile golden = side({wide("out.x", {1}), wide("out.x.lo", {0x1p-60})});
  EXPECT_EQ(first(golden, side({wide("out.x", {1})}, Precision::mp50)).max_absolute, 0x1p-60L);
  EXPECT_TRUE(compare(golden, side({wide("out.x", {1})}, Precision::mp50))
                  .agree);  // a plain double cannot do better
  EXPECT_FALSE(
      compare(golden, side({wide("out.x", {1}), wide("out.x.lo", {0x1p-61})}, Precision::mp50))
          .agree);
  EXPECT_TRUE(
      compare(golden, side({wide("out.x", {1 + 0x1p-52}), wide("out.x.lo", {0x1p-60 - 0x1p-52})},
                           Precision::mp50))
          .agree);
  EXPECT_THROW(compare(golden, side({wide("out.x", {1}), narrow("out.x.lo", {0})})), Error);
}

TEST(Compare, NonFinitePlacesMustCoincide) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const ComparedFile golden = side({wide("out.x", {nan, inf, -inf, 0})});
  EXPECT_TRUE(compare(golden, side({wide("out.x", {nan, inf, -inf, -0.0})})).agree);
  for (const auto& wrong : {std::vector<double>{0, inf, -inf, 0},
                            {nan, -inf, -inf, 0},
                            {nan, inf, 1, 0},
                            {nan, inf, -inf, nan},
                            {inf, inf, -inf, 0}}) {
    const TensorComparison t = first(golden, side({wide("out.x", wrong)}));
    EXPECT_EQ(t.nan_or_inf, 1);
    EXPECT_EQ(t.agreement, Agreement::disagree);
  }
  // A tensor of zeros allows no difference at all.
  EXPECT_FALSE(compare(side({wide("out.x", {0, 0})}), side({narrow("out.x", {0, 1e-30f})})).agree);
}

TEST(Compare, IntegersFlagsAndShapes) {
  const auto whole = [](std::vector<std::int32_t> v) {
    return Made{"out.i", Dtype::i32, {static_cast<std::int64_t>(v.size())}, raw(v)};
  };
  const Made longs{"out.i", Dtype::i64, {2}, raw(std::vector<std::int64_t>{3, -1})};
  EXPECT_TRUE(compare(side({whole({3, -1})}), side({longs})).agree);
  const TensorComparison t = first(side({whole({3, -1})}), side({whole({3, 0})}));
  EXPECT_EQ(t.agreement, Agreement::disagree);
  EXPECT_EQ(t.worst, Shape{1});
  EXPECT_EQ(t.worst_actual_integer, 0);
  EXPECT_EQ(first(side({whole({3, -1})}), side({whole({3})})).reason, "shape [1], golden [2]");
  EXPECT_EQ(first(side({whole({3})}), side({narrow("out.i", {3})})).reason,
            "real numbers, golden integers");
}

TEST(Compare, SaysWhatItLeavesOut) {
  const Comparison c = compare(
      side({wide("in.q", {1}), wide("out.x", {1}), wide("out.y", {1}), wide("out.x.lo", {0})}),
      side({wide("in.q", {2}), wide("out.x", {1}), wide("grad.z", {1}), wide("peer.out.x", {9})}));
  EXPECT_TRUE(c.agree);
  ASSERT_EQ(c.tensors.size(), 2u);
  EXPECT_EQ(c.tensors[1].agreement, Agreement::not_in_actual);
  EXPECT_EQ(c.not_in_golden, std::vector<std::string>{"grad.z"});
  EXPECT_EQ(c.inputs_differ, std::vector<std::string>{"in.q"});
  EXPECT_THROW(compare(side({wide("in.q", {1})}), side({wide("out.x", {1})})), Error);
}

TEST(Compare, UlpsOfEveryFormat) {
  EXPECT_EQ(ulp_at(Dtype::f64, 1), 0x1p-52L);
  EXPECT_EQ(ulp_at(Dtype::f32, -1.5), 0x1p-23L);
  EXPECT_EQ(ulp_at(Dtype::f32, 0), 0x1p-149L);
  EXPECT_EQ(ulp_at(Dtype::f64, 5e-324), 0x1p-1074L);
  EXPECT_EQ(ulp_at(Dtype::bf16, 2), 0x1p-6L);
  EXPECT_EQ(ulp_at(Dtype::f16, 1e9), 0x1p5L);
  EXPECT_EQ(ulp_at(Dtype::f8_e4m3, 448), 0x1p5L);
  EXPECT_EQ(ulp_at(Dtype::f8_e5m2, 1), 0x1p-2L);
}

}  // namespace
}  // namespace plumbline
