// plumbline/plumbline.hpp
//
// The library in one header: load a case or build a Problem, find its operation, evaluate it.
//   const plumbline::Case a_case = plumbline::load_case("case.safetensors");
//   const plumbline::Result result = plumbline::operation(a_case.op()).evaluate(a_case.problem, {});
// Errors are plumbline::Error: which tensor or option, what was found, what was expected.
#pragma once
#include "fixtures/case.hpp"
#include "reference/error.hpp"
#include "reference/registry/operation.hpp"
