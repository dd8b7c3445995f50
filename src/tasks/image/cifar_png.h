// CIFAR-10 as folders of PNG images, which is how others pass it on.
#pragma once

#include <string>

#include "tasks/image/cifar_files.h"

namespace lra::tasks {

// True if `folder` has folders train and test and none of the official files.
bool is_cifar_png_folder(const std::string& folder);

// {train,test}/<class>/<anything>.png or {train,test}/<number>_<class>.png, classes by their names
// in kCifarClassNames; pictures of 32 x 32 pixels, in color or gray (then gray stays what it is).
//
// In a split where every name begins with a unique number ("0_frog.png"), images are in the order
// of these numbers: the official order, if the numbers are, and then the hash is that of the
// official files. Else they are in the order of class and name.
//
// Throws lra::Error that names the file: another name, a link, also in a class folder's place, or
// special file, an image of another size or a damaged one, a split without images.
// `images_of_a_file`: by how many the hash is made, 10,000 in the official files.
Cifar read_cifar_png(const std::string& folder, Progress& progress,
                     size_t images_of_a_file = 10000);

}  // namespace lra::tasks
