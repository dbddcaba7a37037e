#include "bindings/core/dlpack.hpp"

#include "bindings/c/boundary.hpp"

using namespace plumbline;
using namespace plumbline::bindings;

extern "C" {

plumbline_status plumbline_tensor_from_dlpack(const void* dl_tensor, plumbline_tensor* tensor) {
  return guarded([&] {
    const dlpack::Tensor& from = at(static_cast<const dlpack::Tensor*>(dl_tensor), "dl_tensor");
    const plumbline_tensor before = read(tensor, "tensor");
    const std::string name = before.name == nullptr ? "dl_tensor" : before.name;
    dlpack::check_device(from.device, name);
    plumbline_tensor to{};
    to.name = before.name;
    to.data =
        from.data == nullptr ? nullptr : static_cast<const char*>(from.data) + from.byte_offset;
    to.dtype = code_of(dlpack::dtype_of(from.dtype, name));
    to.rank = from.rank;
    to.shape = from.shape;
    to.strides = from.strides;
    write(tensor, to, "tensor");
  });
}

}  // extern "C"
