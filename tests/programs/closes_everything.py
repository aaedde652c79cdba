"""Becomes a daemon the old way: closes every descriptor, then opens files of its own."""

import os
import time

import leakscope

for _ in range(50):
    leakscope.step()
os.closerange(3, 1024)
files = [os.open(f"own-{number}", os.O_RDWR | os.O_CREAT, 0o600) for number in range(300)]
for number, file in enumerate(files):
    os.write(file, b"12345 67890 %d" % number)
for _ in range(300):
    leakscope.step()
    time.sleep(0.001)
for number, file in enumerate(files):
    assert os.pread(file, 100, 0) == b"12345 67890 %d" % number, number
assert max(files) > 200
os.closerange(3, 1024)
leakscope.step()
print("kept my files")
