/* plumbline/plumbline.h
 *
 * plumbline in C: operations evaluated exactly, kernels judged by certified bounds. docs/c.md shows a program.
 *
 * Guarantees
 *  - No exception and no C++ type crosses this boundary. Every function that can fail returns a status; what was
 *    wrong is in plumbline_last_error(), in the same words as on the command line: which tensor or option, what was
 *    found, what was expected.
 *  - Every function may be called from any thread at any time; the last error belongs to the thread. A result, report
 *    or case may be read by many threads at once, and is freed once.
 *  - Tensors are read where they lie and are never written. They need to live until the call returns.
 *  - Structs begin with struct_size, which the caller sets to sizeof the struct: fields are only ever added at the end,
 *    so programs compiled against an older header keep working, and new ones find out by plumbline_abi_version().
 *  - Text is UTF-8 and ends in NUL. JSON has sorted keys. A char* the library returns is given back with
 *    plumbline_free; what results, reports and cases point to lives as long as they do.
 */
#ifndef PLUMBLINE_PLUMBLINE_H
#define PLUMBLINE_PLUMBLINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMBLINE_ABI_VERSION 1

/* PLUMBLINE_ABI_VERSION of the library that is running; it is never smaller than that of a header that fits. */
int32_t plumbline_abi_version(void);
const char* plumbline_version(void); /* "0.1.0" */

/* ---- what can go wrong ---------------------------------------------------------------------------------------- */

typedef int32_t plumbline_status;
enum {
  PLUMBLINE_OK = 0,
  PLUMBLINE_BAD_INPUT = 1, /* plumbline_last_error() names the tensor or option */
  PLUMBLINE_NO_MEMORY = 2,
  PLUMBLINE_INTERNAL = 3 /* a failure of plumbline itself */
};

/* Of this thread's last call that did not return PLUMBLINE_OK; never NULL, "" before there was one. */
const char* plumbline_last_error(void);
/* The parts of that text; "" where there are none. Valid until this thread's next call. */
const char* plumbline_last_error_where(void);
const char* plumbline_last_error_found(void);
const char* plumbline_last_error_expected(void);

void plumbline_free(char* text); /* NULL is fine */

/* ---- what there is -------------------------------------------------------------------------------------------- */

/* [{"name", "summary"}, ...] */
plumbline_status plumbline_operations(char** json);
/* {"name", "summary", "formula", "inputs", "given", "cotangents", "outputs", "options", "presets", "schedule"};
 * shapes are letters, "B T H D". */
plumbline_status plumbline_describe(const char* op, char** json);
/* The options after preset and defaults; an error if they are not valid. options: a JSON object or NULL. */
plumbline_status plumbline_resolve(const char* op, const char* options, char** json);
/* A contract with every field, from the name of a preset or a JSON object; NULL: the list of presets. */
plumbline_status plumbline_contract(const char* contract, char** json);

/* ---- tensors -------------------------------------------------------------------------------------------------- */

typedef int32_t plumbline_dtype;
enum {
  PLUMBLINE_F64 = 0,
  PLUMBLINE_F32 = 1,
  PLUMBLINE_F16 = 2,
  PLUMBLINE_BF16 = 3,
  PLUMBLINE_I64 = 4,
  PLUMBLINE_I32 = 5,
  PLUMBLINE_U8 = 6,
  PLUMBLINE_BOOL = 7,
  PLUMBLINE_F8_E4M3 = 8, /* no infinities; NaN is 0x7f and 0xff */
  PLUMBLINE_F8_E5M2 = 9
};

typedef struct plumbline_tensor {
  size_t struct_size;
  const char*
      name; /* in.<x>, in.<x>.lo, in.<x>.scale, given.<x>, cot.<x>; for check also out.<x>, grad.<x> */
  const void* data;
  plumbline_dtype dtype;
  int32_t rank;
  const int64_t* shape;
  const int64_t* strides; /* in elements, also negative or 0; NULL: C order */
} plumbline_tensor;

/* Fills all but the name from a DLPack tensor, a `DLTensor *` (of a DLManagedTensor, &managed->dl_tensor). It must lie
 * in memory that the CPU reads. The result points into it. */
plumbline_status plumbline_tensor_from_dlpack(const void* dl_tensor, plumbline_tensor* tensor);

/* ---- evaluate and bound --------------------------------------------------------------------------------------- */

typedef struct plumbline_request {
  size_t struct_size;
  const char* op;
  const char* options;   /* JSON object; NULL: {} */
  const char* schedule;  /* JSON object; NULL: {} */
  const char* outputs;   /* those on request, "a,b" or "all"; NULL: none */
  const char* precision; /* f32, f64, f192, mp50, mp100; NULL: f192 */
  const char* contract;  /* name of a preset or JSON object; NULL: none */
  const plumbline_tensor* const* tensors;
  size_t tensor_count;
  int32_t gradient; /* not 0: gradients of the inputs too */
  int32_t threads;  /* 0: one for each core. No bit depends on it. */
} plumbline_request;

typedef struct plumbline_result plumbline_result;

typedef int32_t plumbline_kind;
enum { PLUMBLINE_REAL = 0, PLUMBLINE_INTEGER = 1, PLUMBLINE_BOOLEAN = 2 };

typedef struct plumbline_value {
  size_t struct_size;
  const char* name; /* out.<x> or grad.<x> */
  plumbline_kind kind;
  int32_t rank;
  const int64_t* shape;
  int64_t count;            /* elements, in C order */
  const double *high, *low; /* REAL: the value is high + low, good to 1e-31 relative */
  const int32_t* integers;  /* INTEGER */
  const uint8_t* booleans;  /* BOOLEAN, 0 or 1 */
  const double* bound;      /* with a contract: how far a correct execution may be off (tier 1), */
  const double* bound2;     /* the same statistically (tier 2), */
  const double* gauge;      /* and the size of the terms the element is made of; NULL without one */
} plumbline_value;

/* Values in the precision asked for; with a contract, bounds beside them. */
plumbline_status plumbline_evaluate(const plumbline_request* request, plumbline_result** result);
/* What plumbline_check judges by: values and bounds in the contract's own arithmetic. Needs a contract. */
plumbline_status plumbline_bound(const plumbline_request* request, plumbline_result** result);

size_t plumbline_result_count(const plumbline_result* result);
plumbline_status plumbline_result_at(const plumbline_result* result, size_t index,
                                     plumbline_value* value);
/* By name; PLUMBLINE_BAD_INPUT if there is none. */
plumbline_status plumbline_result_find(const plumbline_result* result, const char* name,
                                       plumbline_value* value);
void plumbline_result_free(plumbline_result* result);

/* ---- check ---------------------------------------------------------------------------------------------------- */

typedef struct plumbline_report plumbline_report;

typedef int32_t plumbline_verdict;
enum { PLUMBLINE_PASS = 0, PLUMBLINE_SUSPECT = 1, PLUMBLINE_UNPROVABLE = 2, PLUMBLINE_FAIL = 3 };

typedef struct plumbline_check_settings {
  size_t struct_size;
  int32_t worst;    /* elements told of each tensor */
  int32_t no_hints; /* not 0: do not look for causes, which takes further evaluations */
} plumbline_check_settings;

/* Judges the tensors of the request named out.<x> and grad.<x> under its contract. settings NULL: 5 elements, causes
 * looked for. PLUMBLINE_OK says that there is a report, whatever its verdict. */
plumbline_status plumbline_check(const plumbline_request* request,
                                 const plumbline_check_settings* settings,
                                 plumbline_report** report);
plumbline_verdict plumbline_report_verdict(const plumbline_report* report);
plumbline_status plumbline_report_json(const plumbline_report* report, char** json);
plumbline_status plumbline_report_html(const plumbline_report* report, char** html);
plumbline_status plumbline_report_svg(const plumbline_report* report, char** svg);
/* strict not 0: SUSPECT is a failure too. */
plumbline_status plumbline_report_junit(const plumbline_report* report, int32_t strict, char** xml);
void plumbline_report_free(plumbline_report* report);

/* ---- cases ---------------------------------------------------------------------------------------------------- */

typedef struct plumbline_case plumbline_case;

/* JSON with the keys of a suite's fixture (docs/suites.md): {"op", "dims", "options", "family", "seed", ...}. The same
 * request gives the same bytes on every machine. threads as in a request. */
plumbline_status plumbline_generate(const char* request, int32_t threads, plumbline_case** made);
plumbline_status plumbline_case_load(const char* path, plumbline_case** loaded);
plumbline_status plumbline_case_save(const plumbline_case* a_case, const char* path);

/* The metadata key "plumbline": {"op", "options", ...}; "{}" where the file has none. */
const char* plumbline_case_metadata(const plumbline_case* a_case);
size_t plumbline_case_tensor_count(const plumbline_case* a_case);
plumbline_status plumbline_case_tensor(const plumbline_case* a_case, size_t index,
                                       plumbline_tensor* tensor);
void plumbline_case_free(plumbline_case* a_case);

#ifdef __cplusplus
}
#endif
#endif
