/* SPDX-License-Identifier: Apache-2.0 */
/* Marks what the shared library shows; everything else is hidden. */
#ifndef MOEPERM_EXPORT_H_
#define MOEPERM_EXPORT_H_

#if defined(__GNUC__)
#define MOEPERM_EXPORT __attribute__((visibility("default")))
#else
#define MOEPERM_EXPORT
#endif

#endif /* MOEPERM_EXPORT_H_ */
