// nanobind itself, compiled as its authors compile it.
#include <nb_combined.cpp>
