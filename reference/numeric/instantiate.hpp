// reference/numeric/instantiate.hpp
//
// Every scalar that operations run in. Each .cpp file with templates lists once what it instantiates:
//     #define INSTANTIATE(T) template void Layer<T>::attend();
//     PLUMBLINE_EACH_SCALAR(INSTANTIATE)
#pragma once
#include "reference/numeric/bounded_softmax.hpp"
#include "reference/numeric/simulated.hpp"

#define PLUMBLINE_EACH_SCALAR(F) \
  F(f32) F(f64) F(f192) F(mp50) F(mp100) F(Bounded<f64>) F(Bounded<f192>) F(Simulated)
