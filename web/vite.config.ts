import { defineConfig } from "vite";

// The result is embedded into the program, so it is one script, one style sheet and one page.
export default defineConfig({
  base: "/",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2021",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      output: {
        entryFileNames: "assets/souk.[hash].js",
        assetFileNames: "assets/souk.[hash][extname]",
      },
    },
  },
});
