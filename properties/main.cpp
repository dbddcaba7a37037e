#include "tests/support/property_main.hpp"

int main(int argc, char** argv) { return plumbline::support::property_main(argc, argv); }
