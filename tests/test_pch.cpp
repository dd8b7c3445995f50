// Anchor of the precompiled GoogleTest header that the tests free of LibTorch share.
