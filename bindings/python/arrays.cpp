#include "bindings/python/arrays.hpp"

#include "bindings/core/digits.hpp"
#include "bindings/core/dlpack.hpp"
#include "reference/error.hpp"

namespace plumbline::bindings {
namespace {

std::vector<std::size_t> sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

// The vector lives on as the array's owner.
template <class U> nb::object array_of(std::vector<U>&& values, const Shape& shape) {
  auto* const held = new std::vector<U>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<U>*>(p); });
  const std::vector<std::size_t> sizes = sizes_of(shape);
  static U nothing{};  // numpy wants an address, also of no element
  U* const data = held->empty() ? &nothing : held->data();
  return nb::cast(nb::ndarray<nb::numpy, U>(data, sizes.size(), sizes.data(), owner));
}

nb::object bound_of(std::vector<double>& values, const Shape& shape) {
  return values.empty() && count_of(shape) > 0 ? nb::object(nb::none())
                                               : array_of(std::move(values), shape);
}

// As numpy can hold it: itself, or unsigned codes of its width.
nb::dlpack::dtype numpy_type(Dtype dtype) {
  if (dtype == Dtype::bf16) return nb::dtype<std::uint16_t>();
  if (dtype == Dtype::f8_e4m3 || dtype == Dtype::f8_e5m2) return nb::dtype<std::uint8_t>();
  const dlpack::DataType type = dlpack::type_of(dtype);
  return {type.code, type.bits, type.lanes};
}

nb::object array_of(const StoredTensor& tensor) {
  auto* const owner = new std::shared_ptr<const void>(tensor.owner);
  const nb::capsule held(
      owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
  const std::vector<std::size_t> sizes = sizes_of(tensor.shape);
  const std::vector<std::int64_t> strides(tensor.stride.begin(), tensor.stride.end());
  static const double nothing = 0;
  const void* data = &nothing;
  if (tensor.data != nullptr) data = tensor.data;
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(data, sizes.size(), sizes.data(), held,
                                                 strides.data(), numpy_type(tensor.dtype)));
}

}  // namespace

BorrowedTensors::BorrowedTensors(nb::list named) {
  for (nb::handle each : named) {
    const auto entry = nb::cast<nb::tuple>(each);
    const auto name = nb::cast<std::string>(entry[0]);
    nb::ndarray<nb::ro> array;
    if (!nb::try_cast(entry[1], array)) {
      throw Error(name, nb::cast<std::string>(nb::str(nb::type_name(entry[1].type()))),
                  "an array: numpy, __dlpack__ or a buffer");
    }
    const nb::dlpack::dtype type = array.dtype();
    dlpack::check_device({array.device_type(), array.device_id()}, name);
    Dtype dtype{};
    if (entry[2].is_none()) {
      dtype = dlpack::dtype_of({type.code, type.bits, type.lanes}, name);
    } else {
      const auto text = nb::cast<std::string>(entry[2]);
      const auto named_dtype = dtype_named(text);
      if (!named_dtype) throw Error(name, "dtype \"" + text + "\"", "a dtype of files, as BF16");
      dtype = *named_dtype;
      if (size_of(dtype) * 8 != type.bits)
        throw Error(name, "elements of " + std::to_string(type.bits) + " bits",
                    "codes as wide as " + text);
    }
    Shape shape, stride;
    for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
      shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
      stride.push_back(array.stride(axis));
    }
    tensors.push_back(tensor_at(name, array.data(), dtype, std::move(shape), &stride));
    held_.push_back(std::move(array));
  }
}

nb::tuple tuple_of(Value& value) {
  if (value.kind == Kind::integer)
    return nb::make_tuple(array_of(std::move(value.integers), value.shape));
  if (value.kind == Kind::boolean) {
    // uint8 here, seen as bool there: std::vector<bool> has no elements.
    return nb::make_tuple(array_of(std::move(value.booleans), value.shape).attr("view")("bool"));
  }
  const std::vector<std::string> texts = digits_of(value);
  nb::object digits = nb::none();
  if (value.exact) digits = nb::cast(texts);
  const bool bounded = !value.bound.empty();
  const auto optional = [&](std::vector<double>& list) {
    return bounded ? bound_of(list, value.shape) : nb::object(nb::none());
  };
  return nb::make_tuple(array_of(std::move(value.high), value.shape),
                        array_of(std::move(value.low), value.shape), optional(value.bound),
                        optional(value.bound2), optional(value.gauge), digits);
}

nb::list list_of(const std::vector<StoredTensor>& tensors) {
  nb::list list;
  for (const StoredTensor& tensor : tensors)
    list.append(nb::make_tuple(tensor.name, std::string(name_of(tensor.dtype)), array_of(tensor)));
  return list;
}

}  // namespace plumbline::bindings
