/* A program in plain C that uses every function of plumbline.h; prints "c program: fine" and returns 0, or says which
 * line was disappointed. Expected numbers are those of docs/discriminating-case.md, or counted on fingers. */
#include <math.h>
#include <plumbline/plumbline.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                    \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "line %d: %s; last error: %s\n", __LINE__, #condition, \
              plumbline_last_error());                                       \
      exit(1);                                                               \
    }                                                                        \
  } while (0)
#define FINE(call) EXPECT((call) == PLUMBLINE_OK)

static plumbline_tensor tensor(const char* name, const void* data, plumbline_dtype dtype,
                               int32_t rank, const int64_t* shape) {
  plumbline_tensor t;
  memset(&t, 0, sizeof t);
  t.struct_size = sizeof t;
  t.name = name, t.data = data, t.dtype = dtype, t.rank = rank, t.shape = shape;
  return t;
}

static plumbline_request request(const char* op, const plumbline_tensor* const* tensors,
                                 size_t count) {
  plumbline_request r;
  memset(&r, 0, sizeof r);
  r.struct_size = sizeof r;
  r.op = op, r.tensors = tensors, r.tensor_count = count, r.threads = 1;
  return r;
}

static void registry(void) {
  char* json = NULL;
  EXPECT(plumbline_abi_version() >= PLUMBLINE_ABI_VERSION);
  EXPECT(strlen(plumbline_version()) > 0);
  FINE(plumbline_operations(&json));
  EXPECT(strstr(json, "\"name\":\"csa_indexer_loss\"") != NULL);
  plumbline_free(json);
  FINE(plumbline_describe("csa_indexer_loss", &json));
  EXPECT(strstr(json, "\"shape\":\"B T H D\"") != NULL && strstr(json, "veomni") != NULL);
  plumbline_free(json);
  FINE(
      plumbline_resolve("csa_indexer_loss", "{\"preset\":\"veomni\",\"m\":4,\"window\":1}", &json));
  EXPECT(strstr(json, "\"teacher\":\"joint\"") != NULL);
  plumbline_free(json);
  FINE(plumbline_contract(NULL, &json));
  EXPECT(strstr(json, "bf16_f32acc") != NULL);
  plumbline_free(json);
  FINE(plumbline_contract("{\"name\":\"mine\",\"preset\":\"bf16_f32acc\"}", &json));
  EXPECT(strstr(json, "\"storage\":\"bf16\"") != NULL);
  plumbline_free(json);
  plumbline_free(NULL);
}

/* Two heads, two blocks, two teachers. */
static double gradient_under(const char* options, int reversed) {
  const double ln2 = log(2), ln3 = log(3), ln5 = log(5), ln7 = log(7);
  const double query[] = {1, 0, 0, 1}, compressed[] = {ln3, 0, 0, ln3}, sink[] = {ln2, ln5};
  const double kv[16] = {[14] = ln2, [15] = ln7};
  const double scores[] = {0.2, -0.1}, scores_reversed[] = {-0.1, 0.2};
  const int64_t query_shape[] = {1, 1, 2, 2}, compressed_shape[] = {1, 2, 2},
                kv_shape[] = {1, 8, 2};
  const int64_t sink_shape[] = {2}, scores_shape[] = {1, 1, 2}, backwards[] = {2, 2, -1};
  plumbline_tensor t[5];
  t[0] = tensor("in.query", query, PLUMBLINE_F64, 4, query_shape);
  t[1] = tensor("in.compressed", compressed, PLUMBLINE_F64, 3, compressed_shape);
  t[2] = tensor("in.kv", kv, PLUMBLINE_F64, 3, kv_shape);
  t[3] = tensor("in.sink", sink, PLUMBLINE_F64, 1, sink_shape);
  t[4] =
      tensor("in.scores", reversed ? scores_reversed + 1 : scores, PLUMBLINE_F64, 3, scores_shape);
  if (reversed) t[4].strides = backwards;
  const plumbline_tensor* const list[] = {&t[0], &t[1], &t[2], &t[3], &t[4]};
  plumbline_request r = request("csa_indexer_loss", list, 5);
  plumbline_result* result = NULL;
  plumbline_value value;
  double first;
  r.options = options, r.gradient = 1, r.outputs = "target,student", r.precision = "mp50";
  FINE(plumbline_evaluate(&r, &result));
  value.struct_size = sizeof value;
  FINE(plumbline_result_find(result, "out.target", &value));
  EXPECT(value.kind == PLUMBLINE_REAL && value.rank == 3 && value.shape[2] == 2 &&
         value.count == 2);
  EXPECT(fabs(value.high[0] + value.high[1] - 1) < 1e-15 && value.bound == NULL);
  FINE(plumbline_result_find(result, "grad.scores", &value));
  first = value.high[0];
  EXPECT(plumbline_result_find(result, "out.nothing", &value) == PLUMBLINE_BAD_INPUT);
  EXPECT(plumbline_result_at(result, plumbline_result_count(result), &value) ==
         PLUMBLINE_BAD_INPUT);
  plumbline_result_free(result);
  return first;
}

static void teachers(void) {
  const char* own = "{\"m\":4,\"window\":1,\"preset\":\"exact\"}";
  const char* joint = "{\"m\":4,\"window\":1,\"preset\":\"veomni\"}";
  EXPECT(fabs(gradient_under(own, 0) - 0.0744425168116589871520712652347) < 1e-15);
  EXPECT(fabs(gradient_under(joint, 0) + 0.00889081652167434618126206809868) < 1e-15);
  EXPECT(gradient_under(own, 1) == gradient_under(own, 0)); /* a negative stride, the same bits */
}

/* As dlpack.h has it. */
typedef struct {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLPackTensor;

/* x [1 2] · weight [2 1 1], fp8 codes times their scale: 1·0.5 + 2·1 = 2.5. */
static void quantised(void) {
  uint16_t x[] = {0, 0x3f80, 0x4000};    /* bf16: 0, 1, 2 */
  const uint8_t weight[] = {0x38, 0x40}; /* e4m3: 1, 2 */
  const float scale[] = {0.5f};
  int64_t x_shape[] = {1, 2};
  const int64_t weight_shape[] = {2, 1, 1}, scale_shape[] = {1, 1, 1}, y_shape[] = {1, 1, 1};
  DLPackTensor packed = {x, {1, 0}, 2, {4, 16, 1}, x_shape, NULL, 2};
  plumbline_tensor t[4];
  t[0] = tensor("in.x", NULL, -1, 0, NULL);
  FINE(plumbline_tensor_from_dlpack(&packed, &t[0]));
  EXPECT(t[0].dtype == PLUMBLINE_BF16 && t[0].data == x + 1 && strcmp(t[0].name, "in.x") == 0);
  t[1] = tensor("in.weight", weight, PLUMBLINE_F8_E4M3, 3, weight_shape);
  t[2] = tensor("in.weight.scale", scale, PLUMBLINE_F32, 3, scale_shape);
  const plumbline_tensor* const list[] = {&t[0], &t[1], &t[2], &t[3]};
  plumbline_request r = request("linear", list, 3);
  plumbline_result* result = NULL;
  plumbline_value value;
  value.struct_size = sizeof value;
  r.contract = "bf16_f32acc";
  FINE(plumbline_evaluate(&r, &result));
  EXPECT(plumbline_result_count(result) == 1);
  FINE(plumbline_result_at(result, 0, &value));
  EXPECT(strcmp(value.name, "out.y") == 0 && value.high[0] == 2.5 && value.low[0] == 0);
  EXPECT(value.bound != NULL && value.bound[0] >= 0 && value.bound[0] < 0.1 && value.gauge != NULL);
  plumbline_result_free(result);
  FINE(plumbline_bound(&r, &result));
  FINE(plumbline_result_find(result, "out.y", &value));
  EXPECT(value.high[0] == 2.5 && value.bound2 != NULL && value.bound2[0] <= value.bound[0]);
  plumbline_result_free(result);

  packed.device.type = 2; /* CUDA */
  EXPECT(plumbline_tensor_from_dlpack(&packed, &t[0]) == PLUMBLINE_BAD_INPUT);
  EXPECT(strstr(plumbline_last_error(), "in.x: found memory of device type 2") != NULL);

  /* Judged: 2.5 passes, 3 does not. */
  uint16_t y[] = {0x4020};
  t[3] = tensor("out.y", y, PLUMBLINE_BF16, 3, y_shape);
  r.tensor_count = 4;
  plumbline_report* report = NULL;
  char* text = NULL;
  FINE(plumbline_check(&r, NULL, &report));
  EXPECT(plumbline_report_verdict(report) == PLUMBLINE_PASS);
  FINE(plumbline_report_json(report, &text));
  EXPECT(strstr(text, "\"verdict\":\"PASS\"") != NULL);
  plumbline_free(text);
  plumbline_report_free(report);
  y[0] = 0x4040;
  plumbline_check_settings settings = {sizeof settings, 1, 0};
  FINE(plumbline_check(&r, &settings, &report));
  EXPECT(plumbline_report_verdict(report) == PLUMBLINE_FAIL);
  FINE(plumbline_report_html(report, &text));
  EXPECT(strstr(text, "<html") != NULL);
  plumbline_free(text);
  FINE(plumbline_report_svg(report, &text));
  EXPECT(strstr(text, "<svg") != NULL);
  plumbline_free(text);
  FINE(plumbline_report_junit(report, 0, &text));
  EXPECT(strstr(text, "failures=\"1\"") != NULL);
  plumbline_free(text);
  plumbline_report_free(report);
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT && result == NULL);
  EXPECT(strstr(plumbline_last_error(), "out.y: found a result") != NULL);
}

static void errors(void) {
  const float x[] = {1, 2};
  const int64_t shape[] = {1, 2};
  plumbline_tensor t = tensor("in.x", x, PLUMBLINE_F32, 2, shape);
  const plumbline_tensor* const list[] = {&t, &t};
  plumbline_request r = request("no_such_operation", list, 1);
  plumbline_result* result = NULL;
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT && result == NULL);
  EXPECT(strcmp(plumbline_last_error_where(), "op") == 0);
  EXPECT(strcmp(plumbline_last_error_found(), "\"no_such_operation\"") == 0);
  EXPECT(strstr(plumbline_last_error_expected(), "rms_norm") != NULL);
  r.op = "rms_norm";
  FINE(plumbline_evaluate(&r, &result));
  plumbline_result_free(result);
  r.tensor_count = 2;
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT); /* the same name twice */
  EXPECT(strstr(plumbline_last_error(), "in.x") != NULL);
  r.tensor_count = 1;
  r.options = "{\"eps\":-1}";
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT);
  EXPECT(strstr(plumbline_last_error(), "eps") != NULL);
  r.options = "{";
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT);
  r.options = NULL;
  t.dtype = 77;
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT);
  EXPECT(strstr(plumbline_last_error(), "in.x: found dtype 77") != NULL);
  t.dtype = PLUMBLINE_F32, t.data = NULL;
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT);
  t.data = x, t.rank = -1;
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT);
  t.rank = 2;
  EXPECT(plumbline_evaluate(NULL, &result) == PLUMBLINE_BAD_INPUT);
  EXPECT(plumbline_evaluate(&r, NULL) == PLUMBLINE_BAD_INPUT);
  EXPECT(plumbline_bound(&r, &result) == PLUMBLINE_BAD_INPUT); /* no contract */
  plumbline_result_free(NULL);

  /* A caller with an older header, one with a newer one, and one with a newer one that uses what is new. */
  struct {
    plumbline_request known;
    int64_t unknown;
  } newer = {r, 0};
  newer.known.struct_size = sizeof newer;
  FINE(plumbline_evaluate(&newer.known, &result));
  plumbline_result_free(result);
  newer.unknown = 1;
  EXPECT(plumbline_evaluate(&newer.known, &result) == PLUMBLINE_BAD_INPUT);
  r.struct_size = offsetof(plumbline_request, gradient);
  r.gradient = 1; /* would need a cotangent, and is not read */
  FINE(plumbline_evaluate(&r, &result));
  plumbline_value value;
  memset(&value, 0, sizeof value);
  value.struct_size = offsetof(plumbline_value, high);
  FINE(plumbline_result_at(result, 0, &value));
  EXPECT(value.count == 2 && value.high == NULL &&
         value.struct_size == offsetof(plumbline_value, high));
  plumbline_result_free(result);
  r.struct_size = 0;
  EXPECT(plumbline_evaluate(&r, &result) == PLUMBLINE_BAD_INPUT);
}

static void cases(const char* path) {
  plumbline_case *made = NULL, *loaded = NULL;
  const char* what = "{\"op\":\"topk\",\"dims\":{\"B\":1,\"T\":3,\"k\":2},\"seed\":5}";
  EXPECT(plumbline_generate("{\"op\":\"topk\",\"dims\":{\"Q\":1}}", 1, &made) ==
         PLUMBLINE_BAD_INPUT);
  FINE(plumbline_generate(what, 1, &made));
  EXPECT(strstr(plumbline_case_metadata(made), "\"op\":\"topk\"") != NULL);
  FINE(plumbline_case_save(made, path));
  FINE(plumbline_case_load(path, &loaded));
  const size_t count = plumbline_case_tensor_count(made);
  EXPECT(count > 1 && plumbline_case_tensor_count(loaded) == count);
  plumbline_tensor inputs[8];
  const plumbline_tensor* list[8];
  size_t input_count = 0;
  plumbline_tensor golden = tensor(NULL, NULL, 0, 0, NULL);
  for (size_t i = 0; i < count; ++i) {
    plumbline_tensor t = tensor(NULL, NULL, 0, 0, NULL);
    FINE(plumbline_case_tensor(loaded, i, &t));
    if (strncmp(t.name, "in.", 3) == 0)
      list[input_count] = &inputs[input_count], inputs[input_count++] = t;
    if (strcmp(t.name, "out.indices") == 0) golden = t;
  }
  EXPECT(input_count > 0 && golden.dtype == PLUMBLINE_I32);
  plumbline_request r = request("topk", list, input_count);
  r.options = "{\"k\":2}";
  plumbline_result* result = NULL;
  plumbline_value value;
  value.struct_size = sizeof value;
  FINE(plumbline_evaluate(&r, &result));
  FINE(plumbline_result_find(result, "out.indices", &value));
  EXPECT(value.kind == PLUMBLINE_INTEGER && value.count == 6);
  EXPECT(memcmp(value.integers, golden.data, 6 * sizeof(int32_t)) == 0);
  plumbline_result_free(result);
  plumbline_case_free(loaded);
  EXPECT(plumbline_case_load("/nowhere/at/all", &loaded) == PLUMBLINE_BAD_INPUT && loaded == NULL);
  plumbline_case_free(made);
  remove(path);
}

static void* on_a_thread(void* number) {
  const char* option = *(const int*)number % 2 == 0 ? "{\"even\":1}" : "{\"odd\":1}";
  for (int i = 0; i < 20; ++i) {
    char* json = NULL;
    EXPECT(plumbline_resolve("rms_norm", option, &json) == PLUMBLINE_BAD_INPUT);
    quantised();
    EXPECT(plumbline_resolve("rms_norm", option, &json) == PLUMBLINE_BAD_INPUT);
    EXPECT(strstr(plumbline_last_error(), *(const int*)number % 2 == 0 ? "even" : "odd") != NULL);
  }
  return NULL;
}

static void threads(void) {
  pthread_t running[4];
  int numbers[4];
  for (int i = 0; i < 4; ++i) {
    numbers[i] = i;
    EXPECT(pthread_create(&running[i], NULL, on_a_thread, &numbers[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) EXPECT(pthread_join(running[i], NULL) == 0);
}

int main(int argc, char** argv) {
  EXPECT(argc == 2); /* a file that may be written */
  EXPECT(strcmp(plumbline_last_error(), "") == 0);
  registry();
  teachers();
  quantised();
  errors();
  cases(argv[1]);
  threads();
  puts("c program: fine");
  return 0;
}
