#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# seeds.sh OUT: real files to begin with that are no text: small programs, and certificates.
set -euo pipefail

out=$1
mkdir -p "$out/functions" "$out/certificate" "$out/unwind" "$out/parser"
source='int f(void) { return 1; } int pthread_mutex_lock(void) { return f(); }
int pthread_mutex_unlock(void) { return 2; } void _start(void) { pthread_mutex_lock(); }'
linker=-Wl,-z,noseparate-code,-z,norelro,-z,max-page-size=64,--build-id=none
small=(-x c -O1 -nostdlib -fno-asynchronous-unwind-tables "$linker")
"${CC:-gcc}" "${small[@]}" -shared -fPIC - -o "$out/functions/library" <<< "$source"
"${CC:-gcc}" "${small[@]}" -static - -o "$out/functions/program" <<< "$source"
"${CC:-gcc}" "${small[@]}" -shared -fPIC -s - -o "$out/functions/stripped" <<< "$source"

# Functions that no frame information tells of: in a file, and alone.
mkdir -p "$out/flow"
switched='int g(int); int h(int x) { switch (x) { case 0: return g(7); case 1: return 5; case 2: return g(g(1));
case 3: return 9; case 4: return x * g(3); case 5: return 2; } for (int i = 0; i < x; i++) g(i); return 1; }'
for level in 1 s 2; do
	"${CC:-gcc}" "${small[@]}" -O$level -shared -fPIC - -o "$out/bare" <<< "$source $switched"
	objcopy -O binary -j .text "$out/bare" "$out/flow/code$level"
	{ printf '\2'; cat "$out/bare"; } > "$out/unwind/bare$level"
done
rm "$out/bare"

# Frame information of real compilers: as it is, and in a small ELF file.
framed=(-x c -O1 -nostdlib -fasynchronous-unwind-tables -shared -fPIC "$linker")
"${CC:-gcc}" "${framed[@]}" - -o "$out/framed" <<< "$source"
objcopy -O binary -j .eh_frame "$out/framed" "$out/frames"
for machine in '\0' '\1'; do
	{ printf '%b' "$machine"; cat "$out/frames"; } > "$out/unwind/frames${machine#?}"
done
{ printf '\2'; cat "$out/framed"; } > "$out/unwind/file"
mv "$out/framed" "$out/parser/framed"

# Where it is for debuggers only, compressed in the file.
many='void _start(void) { }'
many+=$(printf ' int g%d(int i) { return i; }' {1..12})
debugged=(-x c -O0 -g -gz=zlib -nostdlib -fno-asynchronous-unwind-tables -shared -fPIC "$linker")
"${CC:-gcc}" "${debugged[@]}" - -o "$out/debugged" <<< "$many"
objcopy -R '.debug_[!f]*' "$out/debugged"
{ printf '\2'; cat "$out/debugged"; } > "$out/unwind/compressed"
objcopy --decompress-debug-sections --dump-section ".debug_frame=$out/frames" "$out/debugged" /dev/null
{ printf '\4'; cat "$out/frames"; } > "$out/unwind/debug_frames"
mv "$out/debugged" "$out/parser/debugged"
rm "$out/frames"

# The same with all that the parser looks at: a build id, symbols without a size, no symbols.
assembler='asm(".text\n.globl entry\nentry: nop\nnop\nlocal: nop\n");'
"${CC:-gcc}" "${framed[@]}" -Wl,--build-id=0x01020304 - -o "$out/parser/named" <<< "$source $assembler"
cp "$out/functions/stripped" "$out/parser/stripped"

names='subjectAltName=DNS:a.example,IP:10.0.0.1,IP:2001:db8::1,URI:spiffe://x/y,email:a@example.org'
certificate() { # name, and what key it has
	openssl req -x509 -newkey "${@:2}" -nodes -subj /CN=x -addext "$names" -days 30000 \
		-keyout "$out/key" -out "$out/cert" 2> /dev/null
	cat "$out/key" "$out/cert" > "$out/certificate/$1"
	openssl x509 -in "$out/cert" -outform DER -out "$out/certificate/$1.der"
	rm "$out/key" "$out/cert"
}
certificate ecdsa ec -pkeyopt ec_paramgen_curve:prime256v1
certificate ed25519 ed25519
