// Anchor of the precompiled LibTorch header that every torch room shares.
