// Hands something to the browser to keep as a file.
export function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content);
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  // The browser has taken what it saves once the click is over.
  setTimeout(() => URL.revokeObjectURL(address), 0);
}
