#include "data/png_image.h"

#include <png.h>

#include <csetjmp>
#include <cstring>

#include "base/error.h"

namespace lra {
namespace {

constexpr size_t kMaxChunkBytes = 1 << 20;

// State shared by libpng's callbacks. libpng leaves by longjmp, so nothing with a destructor may be
// created between setjmp and the last call; all of it lives here, outside.
struct Session {
  std::span<const std::byte> input;
  size_t position = 0;
  char problem[120] = "";
  std::vector<uint8_t> rows;
  std::vector<png_bytep> row_starts;
  png_uint_32 width = 0, height = 0;
  int channels = 0;
};

void on_error(png_structp png, png_const_charp message) {
  auto& session = *static_cast<Session*>(png_get_error_ptr(png));
  std::strncpy(session.problem, message, sizeof session.problem - 1);
  std::longjmp(png_jmpbuf(png), 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto& session = *static_cast<Session*>(png_get_io_ptr(png));
  if (count > session.input.size() - session.position) png_error(png, "the file ends too early");
  std::memcpy(out, session.input.data() + session.position, count);
  session.position += count;
}

// Reads header and pixels as gray or RGB bytes, with `coloured` all as RGB. False when libpng or we
// refuse the image.
bool read_rows(png_structp png, png_infop info, Session& session, int max_side, bool coloured) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &session, read_bytes);
  png_set_user_limits(png, static_cast<png_uint_32>(max_side), static_cast<png_uint_32>(max_side));
  png_set_chunk_malloc_max(png, kMaxChunkBytes);
  // No chunk except the image is read: a length of 1.9 GB in an sPLT was allocated.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png, info);
  if (png_get_bit_depth(png, info) > 8) png_error(png, "has 16 bits per channel");
  const int kind = png_get_color_type(png, info);
  if ((kind & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, info, PNG_INFO_tRNS) != 0) {
    png_error(png, "is transparent");
  }
  if (kind == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (kind == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png);
  if (coloured) png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  session.width = png_get_image_width(png, info);
  session.height = png_get_image_height(png, info);
  session.channels = png_get_channels(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info);
  session.rows.resize(row_bytes * session.height);
  session.row_starts.resize(session.height);
  for (size_t y = 0; y < session.height; ++y) session.row_starts[y] = &session.rows[y * row_bytes];
  png_read_image(png, session.row_starts.data());
  png_read_end(png, nullptr);
  return true;
}

Session decode(std::span<const std::byte> file, const std::string& name, int max_side,
               bool coloured) {
  Session session;
  session.input = file;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, on_error, on_warning);
  LRA_CHECK(png != nullptr);
  png_infop info = png_create_info_struct(png);
  LRA_CHECK(info != nullptr);
  const bool good = read_rows(png, info, session, max_side, coloured);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!good) {
    throw Error({.where = name,
                 .what = std::string("is not a usable PNG image: ") + session.problem,
                 .expected = "an opaque 8-bit PNG of at most " + std::to_string(max_side) + " x " +
                             std::to_string(max_side) + " pixels"});
  }
  LRA_CHECK(session.channels == 1 || session.channels == 3);
  return session;
}

template <typename Image>
Image image_of(Session&& session) {
  return {.width = static_cast<int>(session.width),
          .height = static_cast<int>(session.height),
          .pixels = std::move(session.rows)};
}

template <typename Image>
std::string encode(const Image& image, png_uint_32 format) {
  LRA_CHECK(image.width > 0 && image.height > 0);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = format;
  LRA_CHECK_EQ(image.pixels.size(), size_t{PNG_IMAGE_SIZE(png)});
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string file(size, '\0');
  LRA_CHECK(
      png_image_write_to_memory(&png, file.data(), &size, 0, image.pixels.data(), 0, nullptr));
  file.resize(size);
  return file;
}

}  // namespace

GrayImage decode_png(std::span<const std::byte> file, const std::string& name, int max_side) {
  Session session = decode(file, name, max_side, /*coloured=*/false);
  if (session.channels == 3) {
    std::vector<uint8_t>& rows = session.rows;
    for (size_t i = 0; i < rows.size() / 3; ++i) {
      const uint8_t* rgb = &rows[3 * i];
      rows[i] =
          static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >> 16);
    }
    rows.resize(rows.size() / 3);
  }
  return image_of<GrayImage>(std::move(session));
}

ColourImage decode_png_colours(std::span<const std::byte> file, const std::string& name,
                               int max_side) {
  return image_of<ColourImage>(decode(file, name, max_side, /*coloured=*/true));
}

std::string encode_png(const GrayImage& image) { return encode(image, PNG_FORMAT_GRAY); }

std::string encode_png(const ColourImage& image) { return encode(image, PNG_FORMAT_RGB); }

}  // namespace lra
