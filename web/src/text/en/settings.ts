export const settings = {
  title: "Settings",
  appearance: "Appearance",
  themeHint: "Kept in this browser.",
  account: "Account",
  signedInAs: "signed in as",
};
