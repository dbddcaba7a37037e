// Every way a safetensors file can lie, and round trips of those that do not.
// What it is meant to catch: a header that is believed, a fault without its tensor's name, bytes that depend on
// anything but the content.
#include "fixtures/safetensors.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

#include "fixtures/strict_json.hpp"
#include "fixtures/text.hpp"
#include "reference/error.hpp"

namespace plumbline {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string framed(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\0');
}

std::string error_of(const std::string& file) {
  try {
    SafetensorsFile::from_memory(bytes_of(file), "f");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string one_tensor(const std::string& fields) { return "{\"in.x\":{" + fields + "}}"; }
std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

struct Fault {
  const char* name;
  std::string header;
  std::size_t data_bytes;
  const char* message;  // its start
};

const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";

std::vector<Fault> faults() {
  const auto shaped = [](const std::string& shape, const std::string& offsets = "[0,8]") {
    return one_tensor(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets);
  };
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"U8","shape":)" + a + R"(},"b":{"dtype":"U8","shape":)" + b + "}}";
  };
  return {
      {"not_json", "xx", 0, "f header: found \"x\" at its start"},
      {"leading_blank", " {}", 0, "f header: found \" \" at its start"},
      {"byte_order_mark", "\xef\xbb\xbf{}", 0, "f header: found a byte order mark"},
      {"array", "[]", 0, "f header: found \"[\" at its start"},
      {"string", "\"a\"", 0, "f header: found \"\"\" at its start"},
      {"cut_off", "{", 0, "f header: found parse error"},
      {"two_objects", "{}{}", 0, "f header: found parse error"},
      {"text_after_object", "{} x", 0, "f header: found parse error"},
      {"nul_after_object", std::string("{}\0", 3), 0, "f header: found a NUL byte"},
      {"comment", "{/* */}", 0, "f header: found parse error"},
      {"trailing_comma", "{" + std::string("\"in.x\":{") + good + "},}", 8,
       "f header: found parse error"},
      {"single_quotes", "{'a':1}", 0, "f header: found parse error"},
      {"latin1", "{\"\xe9\":1}", 0, "f header: found bytes that are not UTF-8"},
      {"overlong_utf8", "{\"\xc0\xaf\":1}", 0, "f header: found bytes that are not UTF-8"},
      {"surrogate_utf8", "{\"\xed\xa0\x80\":1}", 0, "f header: found bytes that are not UTF-8"},
      {"beyond_unicode", "{\"\xf4\x90\x80\x80\":1}", 0, "f header: found bytes that are not UTF-8"},
      {"utf8_cut_off", "{\"\xe2\x82", 0, "f header: found bytes that are not UTF-8"},
      {"lone_escaped_surrogate", R"({"\ud800":1})", 0, "f header: found parse error"},
      {"raw_newline_in_name", "{\"a\nb\":1}", 0, "f header: found parse error"},
      {"nan_shape", shaped("[NaN]"), 8, "f header: found parse error"},
      {"infinite_shape", shaped("[Infinity]"), 8, "f header: found parse error"},
      {"huge_number", shaped("[1e999]"), 8, "f header: found number overflow"},
      {"deep_arrays", repeated("[", 100000), 0, "f header: found \"[\" at its start"},
      {"deep_in_tensor", "{\"in.x\":" + repeated("[", 100000), 0, "f tensor in.x: found an array"},
      {"deep_objects", repeated("{\"a\":", 100000), 0, "f tensor a: found the field \"a\""},
      {"deep_shape", shaped(repeated("[", 100000)), 0, "f tensor in.x shape: found an array"},
      {"deep_metadata", R"({"__metadata__":{"a":)" + repeated("[", 100000), 0,
       "f header __metadata__ a: found an array"},
      {"duplicate_tensor", "{\"in.x\":{" + good + "},\"in.x\":{" + good + "}}", 16,
       "f header: found the name \"in.x\" twice"},
      {"duplicate_by_escape", "{\"in.x\":{" + good + "},\"in.\\u0078\":{" + good + "}}", 16,
       "f header: found the name \"in.x\" twice"},
      {"duplicate_metadata", R"({"__metadata__":{},"__metadata__":{}})", 0,
       "f header: found the name \"__metadata__\" twice"},
      {"duplicate_metadata_key", R"({"__metadata__":{"a":"1","a":"2"}})", 0,
       "f header __metadata__: found the key \"a\" twice"},
      {"duplicate_field", one_tensor(good + R"(,"shape":[2])"), 8,
       "f tensor in.x: found the field \"shape\" twice"},
      {"extra_field", one_tensor(good + R"(,"strides":[1])"), 8,
       "f tensor in.x: found the field \"strides\""},
      {"empty_tensor_name", "{\"\":{" + good + "}}", 8,
       "f header: found a tensor with an empty name"},
      {"metadata_is_null", R"({"__metadata__":null})", 0,
       "f header __metadata__: found null, expected an object"},
      {"metadata_is_array", R"({"__metadata__":[]})", 0, "f header __metadata__: found an array"},
      {"metadata_number", R"({"__metadata__":{"a":1}})", 0,
       "f header __metadata__ a: found the number 1"},
      {"metadata_null", R"({"__metadata__":{"a":null}})", 0, "f header __metadata__ a: found null"},
      {"metadata_object", R"({"__metadata__":{"a":{}}})", 0,
       "f header __metadata__ a: found an object"},
      {"metadata_boolean", R"({"__metadata__":{"a":true}})", 0,
       "f header __metadata__ a: found true"},
      {"tensor_null", R"({"in.x":null})", 0, "f tensor in.x: found null"},
      {"tensor_string", R"({"in.x":"F32"})", 0, "f tensor in.x: found the string \"F32\""},
      {"tensor_number", R"({"in.x":-3})", 0, "f tensor in.x: found the number -3"},
      {"tensor_array", R"({"in.x":[]})", 0, "f tensor in.x: found an array"},
      {"tensor_empty", R"({"in.x":{}})", 0, "f tensor in.x: found no dtype"},
      {"no_dtype", one_tensor(R"("shape":[2],"data_offsets":[0,8])"), 8,
       "f tensor in.x: found no dtype"},
      {"no_shape", one_tensor(R"("dtype":"F32","data_offsets":[0,8])"), 8,
       "f tensor in.x: found no shape"},
      {"no_offsets", one_tensor(R"("dtype":"F32","shape":[2])"), 8,
       "f tensor in.x: found no data_offsets"},
      {"unknown_dtype", one_tensor(R"("dtype":"F4","shape":[2],"data_offsets":[0,8])"), 8,
       "f tensor in.x dtype: found \"F4\", expected one of F64"},
      {"lower_case_dtype", one_tensor(R"("dtype":"f32","shape":[2],"data_offsets":[0,8])"), 8,
       "f tensor in.x dtype: found \"f32\""},
      {"internal_dtype", one_tensor(R"("dtype":"working","shape":[0],"data_offsets":[0,0])"), 0,
       "f tensor in.x dtype: found \"working\""},
      {"dtype_number", one_tensor(R"("dtype":32,"shape":[2],"data_offsets":[0,8])"), 8,
       "f tensor in.x dtype: found the number 32"},
      {"dtype_array", one_tensor(R"("dtype":["F32"],"shape":[2],"data_offsets":[0,8])"), 8,
       "f tensor in.x dtype: found an array"},
      {"shape_number", shaped("2"), 8, "f tensor in.x shape: found the number 2"},
      {"shape_object", shaped("{}"), 8, "f tensor in.x shape: found an object"},
      {"shape_null", shaped("null"), 8, "f tensor in.x shape: found null"},
      {"size_negative", shaped("[-2]"), 8, "f tensor in.x shape: found the number -2"},
      {"size_minus_zero", shaped("[-0]", "[0,0]"), 0, "f tensor in.x shape: found the number -0"},
      {"size_fraction", shaped("[2.0]"), 8, "f tensor in.x shape: found the number 2.0"},
      {"size_exponent", shaped("[2e0]"), 8, "f tensor in.x shape: found the number 2e0"},
      {"size_string", shaped("[\"2\"]"), 8, "f tensor in.x shape: found the string \"2\""},
      {"size_boolean", shaped("[true]"), 8, "f tensor in.x shape: found true"},
      {"size_nested", shaped("[[2]]"), 8, "f tensor in.x shape: found an array"},
      {"size_2_63", shaped("[9223372036854775808]"), 8,
       "f tensor in.x shape: found the number 9223372036854775808"},
      {"size_2_64", shaped("[18446744073709551616]"), 8,
       "f tensor in.x shape: found the number 18446744073709551616"},
      {"product_overflows", shaped("[4294967296,4294967296]"), 8,
       "f tensor in.x shape: found [4294967296, 4294967296]"},
      {"bytes_overflow", shaped("[4611686018427387904]"), 8,
       "f tensor in.x shape: found [4611686018427387904]"},
      {"product_wraps_to_right_size", shaped("[2,9223372036854775807,9223372036854775807]"), 8,
       "f tensor in.x shape: found [2,"},
      {"zero_hides_overflow", shaped("[0,4611686018427387904,4611686018427387904]", "[0,0]"), 0,
       "f tensor in.x shape: found [0,"},
      {"too_many_axes", shaped("[" + repeated("1,", 32) + "1]", "[0,4]"), 4,
       "f tensor in.x shape: found more than 32 numbers"},
      {"offsets_empty", shaped("[2]", "[]"), 8, "f tensor in.x data_offsets: found []"},
      {"offsets_one", shaped("[2]", "[0]"), 8, "f tensor in.x data_offsets: found [0]"},
      {"offsets_three", shaped("[2]", "[0,8,8]"), 8,
       "f tensor in.x data_offsets: found more than 2 numbers"},
      {"offsets_string", shaped("[2]", "[\"0\",8]"), 8,
       "f tensor in.x data_offsets: found the string \"0\""},
      {"offsets_negative", shaped("[2]", "[-8,0]"), 8,
       "f tensor in.x data_offsets: found the number -8"},
      {"offsets_backwards", shaped("[2]", "[8,0]"), 8,
       "f tensor in.x data_offsets: found [8, 0], expected begin"},
      {"offsets_huge", shaped("[2]", "[0,18446744073709551615]"), 8,
       "f tensor in.x data_offsets: found the number 18446744073709551615"},
      {"offsets_too_short", shaped("[2]", "[0,4]"), 4,
       "f tensor in.x data_offsets: found [0, 4], 4 bytes, expected 8"},
      {"offsets_too_long", shaped("[2]", "[0,12]"), 12,
       "f tensor in.x data_offsets: found [0, 12], 12 bytes"},
      {"scalar_of_nothing", shaped("[]", "[0,0]"), 0,
       "f tensor in.x data_offsets: found [0, 0], 0 bytes, expected 4"},
      {"data_cut_off", one_tensor(good), 7,
       "f tensor in.x data_offsets: found [0, 8], expected an end within the 7"},
      {"no_data", one_tensor(good), 0,
       "f tensor in.x data_offsets: found [0, 8], expected an end within the 0"},
      {"trailing_byte", one_tensor(good), 9, "f: found 1 bytes after the last tensor"},
      {"data_without_tensors", "{}", 1, "f: found 1 bytes after the last tensor"},
      {"gap_at_start", shaped("[2]", "[1,9]"), 9,
       "f tensor in.x data_offsets: found [1, 9], after a gap"},
      {"gap_between", two(R"([1],"data_offsets":[0,1])", R"([1],"data_offsets":[2,3])"), 3,
       "f tensor b data_offsets: found [2, 3], after a gap"},
      {"overlap", two(R"([2],"data_offsets":[0,2])", R"([2],"data_offsets":[1,3])"), 3,
       "f tensor b data_offsets: found [1, 3], overlapping a"},
      {"same_place", two(R"([2],"data_offsets":[0,2])", R"([2],"data_offsets":[0,2])"), 2,
       "f tensor b data_offsets: found [0, 2], overlapping a"},
      {"empty_inside_another", two(R"([2],"data_offsets":[0,2])", R"([0],"data_offsets":[1,1])"), 2,
       "f tensor b data_offsets: found [1, 1], overlapping a"},
      {"empty_beyond_the_end", shaped("[0]", "[5,5]"), 0,
       "f tensor in.x data_offsets: found [5, 5], expected an end"},
      {"newline_in_name", "{\"a\\nb\":{}}", 0, "f tensor a\\nb: found no dtype"},
      {"escape_in_name", "{\"a\\u001b[31m\":{}}", 0, "f tensor a\\x1b[31m: found no dtype"},
      {"nul_in_name", "{\"a\\u0000\":{}}", 0, "f tensor a\\x00: found no dtype"},
      {"very_long_name", "{\"" + std::string(100000, 'n') + "\":{}}", 0, "f tensor nnn"},
  };
}

class HeaderFault : public testing::TestWithParam<Fault> {};

TEST_P(HeaderFault, IsRefusedInOneLine) {
  const Fault& fault = GetParam();
  const std::string message = error_of(framed(fault.header, fault.data_bytes));
  EXPECT_TRUE(message.starts_with(fault.message)) << message;
  EXPECT_NE(message.find(": found "), std::string::npos) << message;
  EXPECT_NE(message.find(", expected "), std::string::npos) << message;
  EXPECT_EQ(message, printable(message, 1000));
  EXPECT_LT(message.size(), 600u);
}
INSTANTIATE_TEST_SUITE_P(All, HeaderFault, testing::ValuesIn(faults()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Safetensors, LengthsThatLie) {
  const auto length = [](std::uint64_t value, const std::string& rest) {
    std::string file(8, '\0');
    std::memcpy(file.data(), &value, 8);
    return file + rest;
  };
  EXPECT_EQ(error_of(""), "f: found 0 bytes, expected at least 8, the length of the header");
  EXPECT_EQ(error_of("1234567"), "f: found 7 bytes, expected at least 8, the length of the header");
  EXPECT_EQ(error_of(length(0, "")), "f: found a header of 0 bytes, expected a JSON object");
  EXPECT_EQ(error_of(length(3, "{}")),
            "f: found a header of 3 bytes, expected at most the 2 bytes that follow its length");
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(error_of(length(huge, "{}")),
            "f: found a header of 18446744073709551615 bytes, expected at most 100000000 bytes");
  EXPECT_EQ(error_of(length(100'000'001, "{}")),
            "f: found a header of 100000001 bytes, expected at most 100000000 bytes");
  EXPECT_EQ(error_of(length(huge - 7, "{}")).substr(0, 40),
            "f: found a header of 1844674407370955160");
}

TEST(Safetensors, EveryCutOfAGoodFileIsRefused) {
  const std::string file = framed("{\"__metadata__\":{\"k\":\"v\"},\"in.x\":{" + good + "}}  ", 8);
  EXPECT_EQ(error_of(file), "no error");
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(error_of(file.substr(0, size)), "no error") << size;
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  // Names in any order, blanks, escapes, empty tensors between others, data that is not aligned.
  const std::string header =
      R"( {"b": {"data_offsets": [ 1 , 9 ], "dtype": "F64", "shape": []}, "e" : {"dtype":"F16","shape":[3,0],"data_offsets":[1,1]},)"
      R"("\u0061":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"__metadata__":{"":"\u00e9","k":""}}   )";
  std::string bytes = framed(header.substr(1), 9);
  const double value = -0.1;
  std::memcpy(bytes.data() + bytes.size() - 8, &value, 8);
  const SafetensorsFile file = SafetensorsFile::from_memory(bytes_of(bytes), "f");
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[1].name, "e");
  EXPECT_EQ(file.tensors()[2].name, "b");
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(file.metadata().at(""), "é");
  const StoredTensor b = file.stored(*file.find("b"));
  EXPECT_TRUE(b.given());
  double read = 0;
  std::memcpy(&read, b.data, 8);
  EXPECT_EQ(read, value);
  EXPECT_EQ(file.stored(*file.find("e")).shape, (Shape{3, 0}));
}

TEST(Safetensors, ReadsAFileOfNothing) {
  EXPECT_TRUE(SafetensorsFile::from_memory(bytes_of(framed("{}", 0)), "f").tensors().empty());
  EXPECT_TRUE(SafetensorsFile::from_memory(bytes_of(framed(R"({"__metadata__":{}})", 0)), "f")
                  .metadata()
                  .empty());
}

class Files : public testing::Test {
 protected:
  Files() { std::filesystem::create_directory(folder); }
  ~Files() override { std::filesystem::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                       ("plumbline_safetensors_" + std::to_string(::getpid()));
};

std::vector<TensorBytes> some_tensors() {
  static const std::vector<double> wide{1, 2, 3};
  static const std::vector<std::uint8_t> flags{1, 0, 1};
  static const std::vector<std::uint16_t> halves{0x3f80, 0x7fc0};
  return {{"in.z", Dtype::boolean, {3}, std::as_bytes(std::span(flags))},
          {"in.b", Dtype::f64, {3, 1}, std::as_bytes(std::span(wide))},
          {"in.a", Dtype::f64, {}, std::as_bytes(std::span(wide)).first(8)},
          {"in.h", Dtype::bf16, {2}, std::as_bytes(std::span(halves))},
          {"in.i", Dtype::i64, {0}, {}}};
}

TEST_F(Files, SameContentSameBytes) {
  std::vector<TensorBytes> tensors = some_tensors();
  write_safetensors(path("a"), tensors, {{"k", "v\n\"é"}, {"a", ""}});
  std::reverse(tensors.begin(), tensors.end());
  write_safetensors(path("b"), tensors, {{"a", ""}, {"k", "v\n\"é"}});
  EXPECT_EQ(content(path("a")), content(path("b")));
  const SafetensorsFile file = SafetensorsFile::open(path("a"));
  EXPECT_EQ(file.header_bytes() % 8, 0u);
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"a", ""}, {"k", "v\n\"é"}}));
  std::string names;
  for (const FileTensor& tensor : file.tensors()) names += tensor.name + " ";
  EXPECT_EQ(names, "in.i in.a in.b in.h in.z ");  // widest dtypes first, then names
  // Read and written again, nothing changes.
  std::vector<TensorBytes> again;
  for (const FileTensor& each : file.tensors())
    again.push_back({each.name, each.dtype, each.shape, file.data(each)});
  write_safetensors(path("c"), again, file.metadata());
  EXPECT_EQ(content(path("a")), content(path("c")));
  EXPECT_EQ(content(path("a")).substr(8, 44), R"({"__metadata__":{"a":"","k":"v\n\"é"},"in.i)");
}

TEST_F(Files, AFileMayReplaceTheOneItIsReadFrom) {
  write_safetensors(path("a"), some_tensors(), {});
  const std::string before = content(path("a"));
  const SafetensorsFile file = SafetensorsFile::open(path("a"));
  std::vector<TensorBytes> same;
  for (const FileTensor& each : file.tensors())
    same.push_back({each.name, each.dtype, each.shape, file.data(each)});
  write_safetensors(path("a"), same, {});
  EXPECT_EQ(content(path("a")), before);
}

TEST_F(Files, WhatCannotBeWrittenLeavesNothing) {
  const auto fails = [](const std::string& where, std::vector<TensorBytes> tensors,
                        const std::map<std::string, std::string>& metadata = {}) {
    try {
      write_safetensors(where, std::move(tensors), metadata);
    } catch (const Error& error) {
      return std::string(error.what()).find(": found ") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(fails(path("no/such/folder"), {}));
  EXPECT_TRUE(fails(folder.string(), {}));
  EXPECT_TRUE(fails("", {}));
  EXPECT_TRUE(fails("/dev/null", {}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(fails(path("a"), {{"", Dtype::f64, {0}, {}}}));
  EXPECT_TRUE(fails(path("a"), {{"__metadata__", Dtype::f64, {0}, {}}}));
  EXPECT_TRUE(fails(path("a"), {{"x", Dtype::f64, {1}, {}}}));
  EXPECT_TRUE(fails(path("a"), {{"x", Dtype::working, {0}, {}}}));
  EXPECT_TRUE(fails(path("a"), {{"x", Dtype::f64, {0}, {}}, {"x", Dtype::f32, {0}, {}}}));
  EXPECT_TRUE(fails(path("a"), {{"\xff", Dtype::f64, {0}, {}}}));
  EXPECT_TRUE(fails(path("a"), {}, {{"k", "\xff"}}));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Files, WhatIsNoFileIsRefused) {
  EXPECT_THROW(SafetensorsFile::open(path("missing")), Error);
  EXPECT_THROW(SafetensorsFile::open(folder.string()), Error);
  EXPECT_THROW(SafetensorsFile::open("/dev/null"), Error);
  std::ofstream(path("empty")).close();
  EXPECT_THROW(SafetensorsFile::open(path("empty")), Error);
}

TEST(StrictJson, RefusesWhatIsLoose) {
  const auto error = [](const std::string& text) {
    try {
      parse_json(text, "w", 8);
    } catch (const Error& e) {
      return e.found();
    }
    return std::string("no error");
  };
  EXPECT_EQ(error(R"({"a":[1,{"b":null}],"c":-1.5e3})"), "no error");
  EXPECT_EQ(error(R"({"a":{"b":1,"b":2}})"), "the key \"b\" twice");
  EXPECT_EQ(error(repeated("[", 9)), "JSON nested deeper than 8 levels");
  EXPECT_EQ(error(repeated("[", 8) + repeated("]", 8)), "no error");
  for (const char* text :
       {"",      " ",    "NaN",    "[Infinity]", "[-Infinity]",    "1e999", "{\"a\":1,}",
        "[1 2]", "1 2",  "//\n1",  "'a'",        "{a:1}",          "01",    "+1",
        ".5",    "0x10", "\"\t\"", "tru",        "\xef\xbb\xbf{}", "\xff"}) {
    EXPECT_NE(error(text), "no error") << text;
  }
  EXPECT_EQ(error(std::string("1\0", 2)), "a NUL byte");
}

TEST(Printable, IsOneLine) {
  EXPECT_EQ(printable("a\nb\r\t\x1b\x7f"), "a\\nb\\r\\t\\x1b\\x7f");
  EXPECT_EQ(printable("é\xff\xe2\x82"), "é\\xff\\xe2\\x82");
  EXPECT_EQ(printable("\xe2\x80\xa8\xe2\x80\xae"), "\\u2028\\u202e");
  EXPECT_EQ(printable("0123456789", 4), "01…(6 bytes)…89");
}

}  // namespace
}  // namespace plumbline
