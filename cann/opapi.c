/* SPDX-License-Identifier: Apache-2.0 */
/* libopapi_math.so, libopapi_nn.so, libopapi_transformer.so: names over libmoeperm_cann.so, which
 * they load and which has every function (install.cmake). */
typedef int moeperm_a_c_file_declares_something;
