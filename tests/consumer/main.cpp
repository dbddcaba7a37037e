// A program of somebody else's: evaluates a case through the library and prints its loss.
#include <cstdio>
#include <plumbline/plumbline.hpp>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    const plumbline::Case a_case = plumbline::load_case(argv[1]);
    const plumbline::Result result = plumbline::operation(a_case.op()).evaluate(a_case.problem, {});
    const plumbline::Value* loss = result.find("loss");
    if (loss == nullptr) return 1;
    std::printf("loss %.17g + %.3g\n", loss->high[0], loss->low[0]);
  } catch (const plumbline::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
