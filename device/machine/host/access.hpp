// device/machine/host/access.hpp
//
// Memory as kernels see it. Where the GPU hands out a T&, the host hands out a Ref: a temporary
// that knows its bounds and the line it stands on, and can only be read once, written once, or
// passed to an operation. `auto x = s.key(r, c)` therefore yields nothing useful here, `&`, `++`
// and writes to inputs do not compile; `float x = s.key(r, c)` does what it says.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "device/machine/host/machine.hpp"

namespace plumbline::device::host {

// An index and the line it was written on; made implicitly from any integer.
struct Index {
  std::int64_t value;
  Where at;
  template <std::integral Integer> Index(Integer i, Where where = Where::here())
      : value(static_cast<std::int64_t>(i)), at(where) {}
};

[[noreturn]] void refuse_index(const std::string& what, int axis, Index index, std::int64_t extent);
[[noreturn]] void refuse_wide(const Region& region, const void* p, int bytes, bool leaves,
                              Where at);

template <class T> class Ref {
 public:
  using Value = std::remove_const_t<T>;
  static_assert(std::is_trivially_copyable_v<Value>, "memory holds plain numbers");
  static_assert(std::is_const_v<T> || sizeof(T) % 2 == 0,
                "races are tracked in cells of two bytes; what is written has at least two");

  // room: elements to the end of the row, which a wide access must not leave.
  Ref(T* p, Region& region, std::int64_t room, Where at)
      : p_(p), region_(&region), room_(room), at_(at) {}
  Ref(Ref&&) noexcept = default;

  operator Value() && {
    touch(Touch::read);
    return *p_;
  }
  void operator=(Value v) && requires(!std::is_const_v<T>) {
    touch(Touch::write);
    *p_ = v;
  }
  void operator=(Ref&& other) && requires(!std::is_const_v<T>) {
    std::move(*this) = static_cast<Value>(std::move(other));
  }
  void operator+=(Value v) && requires(!std::is_const_v<T>) {
    change([&](Value x) { return x + v; });
  }
  void operator-=(Value v) && requires(!std::is_const_v<T>) {
    change([&](Value x) { return x - v; });
  }
  void operator*=(Value v) && requires(!std::is_const_v<T>) {
    change([&](Value x) { return x * v; });
  }

  void touch(Touch kind, int bytes = sizeof(T)) const {
    Machine& machine = Machine::current();
    if (machine.options.shadow) machine.touch(*region_, p_, bytes, kind, at_);
  }
  const Ref& wide(int bytes) const {
    const bool leaves = room_ * static_cast<std::int64_t>(sizeof(T)) < bytes;
    if (leaves || reinterpret_cast<std::uintptr_t>(p_) % static_cast<unsigned>(bytes))
      refuse_wide(*region_, p_, bytes, leaves, at_);
    return *this;
  }
  T* pointer() const { return p_; }
  Region& region() const { return *region_; }
  std::int64_t room() const { return room_; }
  Where at() const { return at_; }

 private:
  template <class F> void change(F f) {
    touch(Touch::read);
    touch(Touch::write);
    *p_ = static_cast<Value>(f(*p_));
  }

  T* p_;
  Region* region_;
  std::int64_t room_;
  Where at_;
};

inline void check_index(const char* what, int axis, const Index& i, std::int64_t extent) {
  if (static_cast<std::uint64_t>(i.value) >= static_cast<std::uint64_t>(extent)) [[unlikely]]
    refuse_index(what, axis, i, extent);
}

template <class T, int N> struct alignas(16) Array {
  T data[N];
  Ref<T> operator[](Index i) {
    check_index("a shared array", 0, i, N);
    return {data + i.value, Machine::current().shared(), N - i.value, i.at};
  }
};

template <class T, int R, int C, class Layout = RowMajor> struct alignas(Layout::alignment) Tile {
  T data[Layout::template size<R, C>()];
  Ref<T> operator()(Index row, Index column) {
    check_index("a shared tile", 0, row, R);
    check_index("a shared tile", 1, column, C);
    const int at = Layout::template offset<R, C>(int(row.value), int(column.value));
    // A swizzled row is contiguous for 16 bytes only.
    const std::int64_t room =
        std::is_same_v<Layout, Swizzle128> ? 8 - column.value % 8 : C - column.value;
    return {data + at, Machine::current().shared(), room, column.at};
  }
};

// Global memory, inside a buffer that the stream knows; the last dimension is contiguous.
template <class T, int Rank> class View {
 public:
  View() = default;
  View(T* data, const std::int64_t (&extent)[Rank]) : data_(data) {
    std::int64_t step = 1;
    for (int d = Rank - 1; d >= 0; --d)
      extent_[d] = extent[d], stride_[d] = step, step *= extent[d];
  }
  View(T* data, const std::int64_t (&extent)[Rank], const std::int64_t (&stride)[Rank])
      : data_(data) {
    for (int d = 0; d < Rank; ++d) extent_[d] = extent[d], stride_[d] = stride[d];
    if (stride[Rank - 1] != 1)
      throw std::invalid_argument("the last dimension of a View is contiguous");
  }
  // A copy looks its buffer up anew: launches copy their arguments, and buffers change between
  // them.
  View(const View& other) : data_(other.data_) { copy_shape(other); }
  View& operator=(const View& other) {
    data_ = other.data_, region_ = nullptr;
    copy_shape(other);
    return *this;
  }

  Ref<T> operator()(Index i) const requires(Rank == 1) { return at({&i}); }
  Ref<T> operator()(Index i, Index j) const requires(Rank == 2) { return at({&i, &j}); }
  Ref<T> operator()(Index i, Index j, Index k) const requires(Rank == 3) {
    return at({&i, &j, &k});
  }
  Ref<T> operator()(Index i, Index j, Index k, Index l) const requires(Rank == 4) {
    return at({&i, &j, &k, &l});
  }
  Ref<T> operator()(Index i, Index j, Index k, Index l, Index m) const requires(Rank == 5) {
    return at({&i, &j, &k, &l, &m});
  }

  std::int64_t extent(int d) const { return extent_[d]; }
  std::int64_t stride(int d) const { return stride_[d]; }
  bool exists() const { return data_ != nullptr; }
  T* data() const { return data_; }
  Region& region() const {
    if (!region_) {
      std::int64_t last = 0;
      bool empty = false;
      for (int d = 0; d < Rank; ++d)
        last += (extent_[d] - 1) * stride_[d], empty |= extent_[d] == 0;
      const std::int64_t bytes = empty ? 0 : (last + 1) * static_cast<std::int64_t>(sizeof(T));
      region_ = &Machine::current().find(data_, static_cast<std::size_t>(bytes), "view");
    }
    return *region_;
  }

 private:
  void copy_shape(const View& other) {
    for (int d = 0; d < Rank; ++d) extent_[d] = other.extent_[d], stride_[d] = other.stride_[d];
  }
  Ref<T> at(std::array<const Index*, Rank> index) const {
    std::int64_t offset = 0;
    for (int d = 0; d < Rank; ++d) {
      const Index& i = *index[static_cast<std::size_t>(d)];
      if (static_cast<std::uint64_t>(i.value) >= static_cast<std::uint64_t>(extent_[d]))
          [[unlikely]]
        refuse_index(data_ ? region().name() : "a view that does not exist", d, i, extent_[d]);
      offset += i.value * stride_[d];
    }
    const Index& last = *index[Rank - 1];
    return {data_ + offset, region(), extent_[Rank - 1] - last.value, last.at};
  }

  T* data_ = nullptr;
  std::int64_t extent_[Rank] = {}, stride_[Rank] = {};
  mutable Region* region_ = nullptr;
};

}  // namespace plumbline::device::host
