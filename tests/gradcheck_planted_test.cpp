// gradcheck on gradients with an error planted in them: each one is found and named, coordinate by
// coordinate and along directions. What it is meant to catch: a check that checks less than it
// says.
#include <gtest/gtest.h>

#include <functional>

#include "gradcheck/gradcheck.hpp"
#include "reference/error.hpp"
#include "reference/numeric/scalar.hpp"
#include "tests/gradcheck_problems.hpp"

namespace plumbline {
namespace {

// An operation with something done to its gradients, or to which outputs reach which inputs.
class Tampered final : public Operation {
 public:
  using Tamper = std::function<void(std::vector<Value>&)>;
  Tampered(const Operation& inner, Tamper tamper)
      : Operation(inner), inner_(inner), tamper_(std::move(tamper)) {}
  Result evaluate(const Problem& problem, const Evaluation& how) const override {
    Result result = inner_.evaluate(problem, how);
    if (how.backward) tamper_(result.gradients);
    return result;
  }
  Json resolve(const Json& json) const override { return inner_.resolve(json); }
  bool has_surrogate(const Json& json) const override { return inner_.has_surrogate(json); }
  bool reaches(std::string_view output, std::string_view input) const override {
    return reaches_(output, input);
  }
  std::shared_ptr<const MaskView> mask_view(const Problem& problem) const override {
    return inner_.mask_view(problem);
  }
  std::function<bool(std::string_view, std::string_view)> reaches_ = [](auto, auto) {
    return true;
  };

 private:
  const Operation& inner_;
  Tamper tamper_;
};

Value& gradient_of(std::vector<Value>& gradients, const std::string& name) {
  for (Value& value : gradients) {
    if (value.name == name) return value;
  }
  throw Error(name, "nothing", "a gradient");
}
void change(Value& value, const std::function<void(std::vector<mp100>&)>& f) {
  auto exact = *static_cast<const std::vector<mp100>*>(value.exact.get());
  f(exact);
  value.exact = std::make_shared<const std::vector<mp100>>(std::move(exact));
}
Tampered::Tamper elements(const std::string& name,
                          const std::function<void(std::vector<mp100>&)>& f) {
  return [name, f](std::vector<Value>& gradients) { change(gradient_of(gradients, name), f); };
}

GradcheckReport check_tampered(const Tampered::Tamper& tamper, bool along_directions,
                               const Problem& problem) {
  GradcheckSettings settings;
  if (along_directions) settings.max_coordinates = 0;
  return gradcheck(Tampered(operation("csa_indexer_loss"), tamper), problem, settings);
}

class Planted : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(EachWay, Planted, testing::Bool(), [](const auto& each) {
  return each.param ? "AlongDirections" : "ByCoordinate";
});

TEST_P(Planted, OneElementIsNamedWithBothValues) {
  const auto report = check_tampered(elements("index_q", [](auto& g) { g[13] += mp100("1e-25"); }),
                                     GetParam(), csa_problem(true));
  EXPECT_FALSE(report.pass());
  const GradcheckInput& input = of(report, "index_q");
  ASSERT_EQ(input.wrong.size(), 1u) << notes_of(report);
  EXPECT_EQ(input.wrong[0].index, (Shape{0, 3, 0, 1}));
  EXPECT_GT(input.wrong[0].digits, 20);
  EXPECT_LT(input.wrong[0].digits, 27);
  EXPECT_NE(input.wrong[0].gradient, input.wrong[0].difference);
  EXPECT_EQ(input.share(), 100);
  EXPECT_TRUE(of(report, "index_k").pass());
}

TEST_P(Planted, OneSign) {
  const auto report = check_tampered(elements("index_k", [](auto& g) { g[1] = -g[1]; }), GetParam(),
                                     csa_problem(true));
  ASSERT_EQ(of(report, "index_k").wrong.size(), 1u) << notes_of(report);
  EXPECT_EQ(of(report, "index_k").wrong[0].index, (Shape{0, 0, 1}));
}

TEST_P(Planted, MissingRow) {
  const auto report = check_tampered(elements("index_q",
                                              [](auto& g) {
                                                for (std::size_t i = 16; i < 20; ++i)
                                                  g[i] = 0;  // row 4
                                              }),
                                     GetParam(), csa_problem(true));
  EXPECT_FALSE(report.pass());
  const GradcheckInput& input = of(report, "index_q");
  EXPECT_GE(input.wrong.size(), 2u) << notes_of(report);  // where its ReLUs are alive
  for (const GradcheckElement& wrong : input.wrong) EXPECT_EQ(wrong.index[1], 4);
}

TEST_P(Planted, EveryElementByAFactor) {
  const auto report = check_tampered(elements("index_w",
                                              [](auto& g) {
                                                for (mp100& x : g) x *= 2;
                                              }),
                                     GetParam(), csa_problem(true));
  EXPECT_FALSE(report.pass());
  EXPECT_EQ(of(report, "index_w").wrong.size(), 2u)
      << notes_of(report);  // the others are 0: dead ReLUs
}

TEST_P(Planted, NotANumber) {
  const auto report = check_tampered(elements("index_w", [](auto& g) { g[7] = nan; }), GetParam(),
                                     csa_problem(true));
  ASSERT_EQ(of(report, "index_w").wrong.size(), 1u) << notes_of(report);
  EXPECT_EQ(of(report, "index_w").wrong[0].index, (Shape{0, 3, 1}));
  EXPECT_EQ(of(report, "index_w").wrong[0].why, "not finite");
}

TEST_P(Planted, GradientAtAHiddenNan) {
  Problem problem = csa_problem(true);
  set(problem, "index_k", 5, nan);
  const auto report = check_tampered(elements("index_k", [](auto& g) { g[5] = mp100("1e-90"); }),
                                     GetParam(), problem);
  ASSERT_EQ(of(report, "index_k").wrong.size(), 1u) << notes_of(report);
  EXPECT_EQ(of(report, "index_k").wrong[0].index, (Shape{0, 2, 1}));
}

TEST(PlantedGradient, WhereTheInputIsNotRead) {
  // Far below 30 digits, yet a place that is not read has a gradient of exactly 0.
  const auto report = check_tampered(elements("index_k", [](auto& g) { g[5] = mp100("1e-90"); }),
                                     false, csa_problem(true));
  ASSERT_EQ(of(report, "index_k").wrong.size(), 1u) << notes_of(report);
  EXPECT_EQ(of(report, "index_k").wrong[0].why, "the input is not read");
}

TEST(PlantedGradient, MissingTensorWrongShapeOneTooMany) {
  const Problem problem = csa_problem(true);
  const auto missing =
      check_tampered([](std::vector<Value>& g) { g.erase(g.begin()); }, false, problem);
  EXPECT_FALSE(missing.pass());
  EXPECT_NE(notes_of(missing).find("in.index_q: the operation returns no gradient for it"),
            std::string::npos);
  const auto shape = check_tampered(
      [](std::vector<Value>& g) {
        g[1].shape = {2, 4};
      },
      false, problem);
  EXPECT_FALSE(shape.pass());
  EXPECT_NE(notes_of(shape).find("the gradient has shape [2, 4], the input [1, 4, 2]"),
            std::string::npos);
  const auto more = check_tampered(
      [](std::vector<Value>& g) {
        g.push_back(g[0]);
        g.back().name = "query";
      },
      false, problem);
  EXPECT_EQ(more.unexpected, std::vector<std::string>{"query"});
  EXPECT_FALSE(more.pass());
}

// An output whose gradient is stopped on the way to an input is no part of what that input is
// checked against.
TEST(PlantedGradient, StoppedOutputIsLeftOut) {
  Tampered stopped(operation("csa_indexer_loss"), elements("index_w", [](auto& g) {
                     for (mp100& x : g) x = 0;
                   }));
  EXPECT_FALSE(gradcheck(stopped, csa_problem(true)).pass());
  stopped.reaches_ = [](std::string_view, std::string_view input) { return input != "index_w"; };
  expect_pass(gradcheck(stopped, csa_problem(true)));
}

}  // namespace
}  // namespace plumbline
